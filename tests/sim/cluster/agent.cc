#include "tests/sim/cluster/agent.h"

#include "comm/wire/in_hand.h"

namespace lockstep::sim {
namespace {

constexpr int64_t kPreemptedPauseMs = 1'000;
constexpr int64_t kAgentLeaveMs = 10'000;
constexpr int64_t kQuickDeathMs = 2'000;
constexpr size_t kExitsTold = 1'000;

bool is_hopeless(int code) {
  return (code >= 64 && code <= 66) || code == 78;
}

}  // namespace

SimAgent::SimAgent(World& world, std::string node, uint32_t workers)
    : Process(world, node + "/agent." + std::to_string(world.next_pid())),
      node_(std::move(node)),
      wanted_(workers),
      transport_(world.network.transport(name(), loop())) {
  for (uint32_t rank = 0; rank < wanted_; ++rank) start_worker(rank);
  rpc::RpcClient::Options options;
  options.address = [this]() -> Result<rpc::Address> {
    if (!world_.endpoint) return Status(Code::kNoInput, "no coordinator.json yet");
    return world_.endpoint->control;
  };
  options.token = kToken;
  options.jitter_seed = pid();
  client_ = std::make_unique<rpc::RpcClient>(
      *transport_, std::move(options),
      rpc::RpcClient::Handlers{[this] { hello(); },
                               [this](wire::Envelope&& envelope) { on_message(envelope); },
                               [](const Status&) {}, [](const Status&) {}});
}

SimAgent::~SimAgent() {
  vanish();
}

// Workers die with their agent (the kernel's parent-death signal).
void SimAgent::vanish() {
  client_.reset();
  for (const auto& worker : all_) {
    worker->on_ended = nullptr;
    worker->kill();
  }
}

std::vector<SimWorker*> SimAgent::living() const {
  std::vector<SimWorker*> found;
  for (const auto& [rank, worker] : workers_)
    if (worker->is_alive()) found.push_back(worker);
  return found;
}

void SimAgent::start_worker(uint32_t local_rank) {
  if (has_goodbye_ || is_stopping_ || local_rank >= wanted_ || workers_.count(local_rank) != 0)
    return;
  all_.push_back(std::make_unique<SimWorker>(world_, node_, local_rank));
  SimWorker* worker = all_.back().get();
  workers_[local_rank] = worker;
  started_ms_[local_rank] = loop().now_ms();
  worker->on_ended = [this, local_rank](Process& ended) {
    // SIGCHLD reaches a stopped agent only when it goes on.
    const int64_t delay_ms = static_cast<int64_t>(world_.prng.below(10));
    loop().call_after(delay_ms, [this, local_rank, &ended] { on_worker_ended(local_rank, ended); });
  };
}

void SimAgent::on_worker_ended(uint32_t local_rank, const Process& ended) {
  const Ending& ending = ended.ending();
  workers_.erase(local_rank);
  const bool is_expected = ending.exit_code == 0 || has_goodbye_ || is_stopping_;
  const bool restarts = !is_expected && !is_hopeless(ending.exit_code) && local_rank < wanted_;
  wire::Envelope envelope;
  wire::WorkerExit& exit = *envelope.mutable_worker_exit();
  exit.set_pid(ended.pid());
  exit.set_exit_code(ending.exit_code);
  exit.set_signal(ending.signal);
  exit.set_will_restart(restarts);
  exit.set_local_rank(local_rank);
  *exit.mutable_in_hand() = to_wire(static_cast<const SimWorker&>(ended).in_hand());
  if (client_->is_ready()) (void)client_->send(envelope);
  exits_.push_back(std::move(envelope));
  if (exits_.size() > kExitsTold) exits_.pop_front();
  if (restarts) {
    const int64_t pause_ms = ending.exit_code == 75 ? kPreemptedPauseMs : 0;
    loop().call_after(pause_ms, [this, local_rank] { start_worker(local_rank); });
  }
  end_if_alone();
}

void SimAgent::hello() {
  wire::Envelope envelope;
  wire::AgentHello& hello = *envelope.mutable_agent_hello();
  hello.set_run_id(world_.job.job());
  hello.set_node(node_);
  hello.set_pid(pid());
  hello.set_workers(wanted_);
  for (const auto& [rank, worker] : workers_) hello.add_living(worker->pid());
  (void)client_->send(envelope);
  for (const wire::Envelope& exit : exits_) (void)client_->send(exit);
}

void SimAgent::on_message(const wire::Envelope& envelope) {
  if (envelope.has_goodbye()) return on_goodbye();
  if (envelope.has_kill_worker()) return kill_worker(envelope.kill_worker().pid());
  if (!envelope.has_set_workers() || has_goodbye_) return;
  wanted_ = envelope.set_workers().workers();
  for (uint32_t rank = 0; rank < wanted_; ++rank) start_worker(rank);
}

// Only a child of its own that lives: the number may be another process by now.
void SimAgent::kill_worker(uint32_t pid) {
  for (SimWorker* worker : living())
    if (worker->pid() == pid) return worker->kill();
}

void SimAgent::on_goodbye() {
  if (std::exchange(has_goodbye_, true)) return;
  // Started while the run ended: nobody is there who could tell them.
  for (SimWorker* worker : living())
    if (loop().now_ms() - started_ms_[worker->local_rank()] < kQuickDeathMs) worker->kill();
  loop().call_after(kAgentLeaveMs, [this] {
    for (SimWorker* worker : living()) worker->kill();
  });
  end_if_alone();
}

void SimAgent::terminate() {
  if (!is_alive() || std::exchange(is_stopping_, true)) return;
  world_.trace.add("SIGTERM", name());
  for (SimWorker* worker : living()) worker->terminate();
  end_if_alone();
}

void SimAgent::kill_workers() {
  if (!is_alive() || !is_stopping_) return;
  for (SimWorker* worker : living()) worker->kill();
}

void SimAgent::end_if_alone() {
  const bool may_end = has_goodbye_ || (is_stopping_ && !client_->is_ready());
  if (!may_end || !workers_.empty()) return;
  loop().post([this] { exit(0); });
}

}  // namespace lockstep::sim
