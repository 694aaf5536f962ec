#include "tests/sim/cluster/agent.h"

#include <algorithm>

#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "comm/wire/in_hand.h"

namespace lockstep::sim {
namespace {

constexpr int64_t kAgentLeaveMs = 10'000;

}  // namespace

SimAgent::SimAgent(World& world, std::string node, uint32_t workers)
    : Process(world, node + "/agent." + std::to_string(world.next_pid())),
      node_(std::move(node)),
      transport_(world.network.transport(name(), loop())) {
  look_at_gpus();  // before any worker starts
  set_wanted(workers);
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
  for (const auto& [rank, place] : places_)
    if (place.worker != nullptr && place.worker->is_alive()) found.push_back(place.worker);
  return found;
}

void SimAgent::set_wanted(uint32_t workers) {
  uint32_t missing = workers > wanted_ ? workers - wanted_ : 0;
  if (workers != wanted_) surplus_deaths_ = 0;
  wanted_ = workers;
  for (auto& [rank, place] : places_)
    if (occupied() > wanted_) place.is_held = false;
  if (workers == 0) forget_restarts();
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; missing > 0; ++rank) {
    Place& place = places_[rank];
    if (is_occupied(place)) continue;
    place.waits = true;
    ranks.push_back(rank);
    --missing;
  }
  tell_news();
  for (const uint32_t rank : ranks) {
    Place& place = places_[rank];
    place.waits = false;
    place.is_held = place.is_unfit;
    if (!place.is_held) start_worker(rank);
  }
}

void SimAgent::look_at_gpus() {
  if (!is_alive() || has_goodbye_ || is_stopping_) return;
  seen_unfit_.clear();
  for (const auto& [node, local_rank] : world_.unfit_gpus)
    if (node == node_) seen_unfit_.insert(local_rank);
  tell_news();
}

void SimAgent::tell_news() {
  for (auto& [rank, place] : places_) {
    const bool is_unfit = is_occupied(place) && seen_unfit_.contains(rank);
    if (place.is_unfit == is_unfit) continue;
    place.is_unfit = is_unfit;
    if (is_unfit && place.worker != nullptr) place.unfit_pid = place.worker->pid();
    tell_gpu(rank);
    if (!is_unfit && std::exchange(place.is_held, false)) start_worker(rank);
  }
}

void SimAgent::tell_gpu(uint32_t local_rank) {
  wire::Envelope envelope;
  wire::NodeNotice& notice = *envelope.mutable_node_notice();
  notice.set_source("gpu");
  notice.set_is_certain(true);
  notice.add_local_ranks(local_rank);
  notice.set_undo(!places_[local_rank].is_unfit);
  notice.set_reason(notice.undo() ? "" : "rows of its memory wait to be replaced");
  if (client_ != nullptr && client_->is_ready()) (void)client_->send(envelope);
}

// As in deploy/agent/worker_slots.cc.
bool SimAgent::leaves_for_gpu(const Place& place, const Process& ended) const {
  const Ending& ending = ended.ending();
  const bool has_left =
      ending.signal == 0 && (ending.exit_code == 0 || ending.exit_code == kCheckpointedExit);
  return has_left && (place.is_unfit || place.unfit_pid == ended.pid()) && occupied() < wanted_ &&
         !has_goodbye_ && !is_stopping_;
}

uint32_t SimAgent::occupied() const {
  return static_cast<uint32_t>(std::count_if(
      places_.begin(), places_.end(), [](const auto& entry) { return is_occupied(entry.second); }));
}

bool SimAgent::is_occupied(const Place& place) {
  return place.worker != nullptr || place.waits || place.is_held;
}

void SimAgent::start_worker(uint32_t local_rank) {
  all_.push_back(std::make_unique<SimWorker>(world_, node_, local_rank));
  SimWorker* worker = all_.back().get();
  Place& place = places_[local_rank];
  place.worker = worker;
  place.waits = false;
  place.started_ms = loop().now_ms();
  if (place.is_unfit) place.unfit_pid = worker->pid();
  worker->on_ended = [this, local_rank](Process& ended) {
    // SIGCHLD reaches a stopped agent only when it goes on.
    const int64_t delay_ms = static_cast<int64_t>(world_.prng.below(10));
    loop().call_after(delay_ms, [this, local_rank, &ended] { on_worker_ended(local_rank, ended); });
  };
}

ExitDecision SimAgent::decide(Place& place, const Ending& ending) {
  const bool is_quick = loop().now_ms() - place.started_ms < limits::kQuickDeathMs;
  place.quick_deaths = is_quick ? place.quick_deaths + 1 : 0;
  const bool is_surplus = occupied() >= wanted_;
  const ProcessEnd end{ending.exit_code, ending.signal};
  const ExitDecision decision = decide_after_exit({.end = end,
                                                   .run_is_over = has_goodbye_,
                                                   .stop_requested = is_stopping_,
                                                   .is_wanted = !is_surplus,
                                                   .has_lost_other = surplus_deaths_ > 0,
                                                   .crashes_left = 1,
                                                   .preemptions_left = 1,
                                                   .quick_deaths = place.quick_deaths});
  if (decision.action == ExitAction::kReport && is_surplus) ++surplus_deaths_;
  if (decision.action == ExitAction::kRestart && end.is_success()) --surplus_deaths_;
  return decision;
}

void SimAgent::on_worker_ended(uint32_t local_rank, const Process& ended) {
  const Ending& ending = ended.ending();
  Place& place = places_[local_rank];
  place.worker = nullptr;
  ExitDecision decision;
  if (!leaves_for_gpu(place, ended)) {
    decision = decide(place, ending);
  } else if (place.is_unfit) {
    place.is_held = true;
  } else {
    decision = {ExitAction::kRestart, ExitCause::kNone, limits::kRestartAfterExitMs, ""};
  }
  place.waits = decision.action == ExitAction::kRestart;
  wire::Envelope envelope;
  wire::WorkerExit& exit = *envelope.mutable_worker_exit();
  exit.set_pid(ended.pid());
  exit.set_process(ended.pid());  // never another one's here
  exit.set_exit_code(ending.exit_code);
  exit.set_signal(ending.signal);
  exit.set_will_restart(place.waits);
  exit.set_local_rank(local_rank);
  *exit.mutable_in_hand() = to_wire(static_cast<const SimWorker&>(ended).in_hand());
  if (client_->is_ready()) (void)client_->send(envelope);
  exits_.push_back(std::move(envelope));
  if (exits_.size() > limits::kExitsTold) exits_.pop_front();
  if (place.waits) {
    loop().call_after(decision.pause_ms, [this, local_rank] {
      if (places_[local_rank].waits) start_worker(local_rank);
    });
  }
  end_if_alone();
}

// No place waits for a restart any more.
void SimAgent::forget_restarts() {
  for (auto& [rank, place] : places_) place.waits = place.is_held = false;
}

void SimAgent::hello() {
  wire::Envelope envelope;
  wire::AgentHello& hello = *envelope.mutable_agent_hello();
  hello.set_run_id(world_.job.job());
  hello.set_node(node_);
  hello.set_pid(pid());
  hello.set_workers(wanted_);
  for (const auto& [rank, place] : places_)
    if (place.worker != nullptr) {
      hello.add_living(place.worker->pid());
      hello.add_living_process(place.worker->pid());
    }
  (void)client_->send(envelope);
  for (const auto& [rank, place] : places_)
    if (place.is_unfit && !LOCKSTEP_BUG(kNoticeNotRepeated)) tell_gpu(rank);
  for (const wire::Envelope& exit : exits_) (void)client_->send(exit);
}

void SimAgent::on_message(const wire::Envelope& envelope) {
  if (envelope.has_goodbye()) return on_goodbye();
  if (envelope.has_kill_worker()) return kill_worker(envelope.kill_worker().pid());
  if (!envelope.has_set_workers() || has_goodbye_ || is_stopping_) return;
  set_wanted(envelope.set_workers().workers());
  for (const uint32_t local_rank : envelope.set_workers().unfit_local_ranks())
    if (std::exchange(places_[local_rank].is_held, false)) start_worker(local_rank);
}

// Kills only a living child of the agent: the pid may be another process by now.
void SimAgent::kill_worker(uint32_t pid) {
  for (SimWorker* worker : living())
    if (worker->pid() == pid) return worker->kill();
}

void SimAgent::on_goodbye() {
  if (std::exchange(has_goodbye_, true)) return;
  forget_restarts();
  // Workers that started while the run ended find no coordinator that could tell them.
  for (SimWorker* worker : living())
    if (loop().now_ms() - places_[worker->local_rank()].started_ms < limits::kQuickDeathMs)
      worker->kill();
  loop().call_after(kAgentLeaveMs, [this] {
    for (SimWorker* worker : living()) worker->kill();
  });
  end_if_alone();
}

void SimAgent::terminate() {
  if (!is_alive() || std::exchange(is_stopping_, true)) return;
  world_.trace.add("SIGTERM", name());
  forget_restarts();
  for (SimWorker* worker : living()) worker->terminate();
  end_if_alone();
}

void SimAgent::kill_workers() {
  if (!is_alive() || !is_stopping_) return;
  for (SimWorker* worker : living()) worker->kill();
}

void SimAgent::end_if_alone() {
  const bool may_end = has_goodbye_ || (is_stopping_ && !client_->is_ready());
  if (!may_end || occupied() > 0) return;
  loop().post([this] { exit(0); });
}

}  // namespace lockstep::sim
