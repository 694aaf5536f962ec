#include "tests/sim/world/process.h"

#include <csignal>
#include <utility>

#include "tests/sim/world/world.h"

namespace lockstep::sim {

rpc::TimerId ProcessLoop::call_after(int64_t delay_ms, std::function<void()> fn) {
  if (has_ended_) return 0;
  const rpc::TimerId id = ++last_id_;
  const rpc::TimerId timer = loop_.call_after(scaled(delay_ms, 1 / rate_), [this, id] { due(id); });
  waiting_.emplace(id, Waiting{timer, std::move(fn)});
  return id;
}

void ProcessLoop::cancel(rpc::TimerId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  loop_.cancel(found->second.timer);
  waiting_.erase(found);  // a held id finds nothing any more
}

void ProcessLoop::due(rpc::TimerId id) {
  if (is_stopped_ || !held_.empty()) return held_.push_back(id);
  run(id);
}

void ProcessLoop::run(rpc::TimerId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  const std::function<void()> fn = std::move(found->second.fn);
  waiting_.erase(found);
  fn();
}

void ProcessLoop::go_on() {
  if (!std::exchange(is_stopped_, false)) return;
  // Through the loop, one by one: each may end the process or stop it again.
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    while (!alive.expired() && !is_stopped_ && !has_ended_ && !held_.empty()) {
      const rpc::TimerId id = held_.front();
      held_.pop_front();
      run(id);
    }
  });
}

void ProcessLoop::end() {
  has_ended_ = true;
  for (const auto& [id, waiting] : waiting_) loop_.cancel(waiting.timer);
  waiting_.clear();
  held_.clear();
}

Process::Process(World& world, std::string name)
    : world_(world),
      name_(std::move(name)),
      pid_(world.next_pid()),
      loop_(world.loop, world.clock_rate(pid_)) {}

// Later messages to this process find no loop of it any more.
Process::~Process() {
  if (is_alive()) world_.network.exit(name_);
}

void Process::kill(bool with_machine) {
  end({-1, SIGKILL}, !with_machine);
}

void Process::exit(int code) {
  end({code, 0}, /*deliver=*/true);
}

void Process::end(Ending ending, bool deliver) {
  if (!is_alive()) return;
  world_.trace.add("end", name_, ending.exit_code, static_cast<uint64_t>(ending.signal));
  ending_ = ending;
  if (deliver)
    world_.network.exit(name_);
  else
    world_.network.crash(name_);
  loop_.end();
  vanish();
  if (on_ended) on_ended(*this);
}

void Process::stop() {
  if (!is_alive()) return;
  world_.trace.add("stop", name_);
  world_.disturbed.insert(name_);
  loop_.stop();
}

void Process::go_on() {
  if (!is_alive() || !loop_.is_stopped()) return;
  world_.trace.add("continue", name_);
  loop_.go_on();
}

}  // namespace lockstep::sim
