#include "tests/sim/cluster/cluster.h"

#include <algorithm>

namespace lockstep::sim {
namespace {

using coordinator::BeginMode;

constexpr uint32_t kMaxStarts = 20;
constexpr int64_t kLeaveMs = 30'000;   // from the coordinator's end on
constexpr int64_t kInsistMs = 2'000;   // from SIGTERM to SIGINT, which kills workers
constexpr int64_t kRestartMs = 1'000;  // until a user has seen that the run ended

}  // namespace

Cluster::Cluster(World& world)
    : world_(world), command_transport_(world.network.transport("command")) {
  start(BeginMode::kFirst);
}

Cluster::~Cluster() {
  commands_.clear();
}

void Cluster::start(BeginMode mode) {
  ++starts_;
  is_starting_ = false;
  chosen_code_.reset();
  world_.endpoint.reset();
  start_coordinator(mode);
  for (auto& agent : agents_) dead_agents_.push_back(std::move(agent));
  agents_.clear();
  for (uint32_t node = 0; node < world_.options.nodes; ++node) {
    agents_.emplace_back();
    bring_back_node(node);
  }
}

void Cluster::bring_back_node(size_t node) {
  if (agents_[node] && agents_[node]->is_alive()) return;
  if (agents_[node]) dead_agents_.push_back(std::move(agents_[node]));
  agents_[node] = std::make_unique<SimAgent>(world_, "n" + std::to_string(node),
                                             world_.options.workers_per_node);
  agents_[node]->on_ended = [this](Process&) { on_agent_ended(); };
}

void Cluster::lose_node(size_t node, bool with_machine) {
  if (agents_[node]->is_alive()) kill_agent(*agents_[node], with_machine);
}

// If the machine goes, the last messages of its workers go with it.
void Cluster::kill_agent(SimAgent& agent, bool with_machine) {
  for (SimWorker* worker : agent.living()) {
    if (!with_machine) break;
    worker->on_ended = nullptr;
    worker->kill(true);
  }
  agent.kill(with_machine);
}

const coordinator::RunServer* Cluster::server() const {
  return coordinator_ != nullptr && coordinator_->is_alive() ? coordinator_->server() : nullptr;
}

bool Cluster::is_ending() const {
  const bool is_over =
      server() != nullptr && server()->state().run == coordinator::RunState::kEnded;
  return chosen_code_.has_value() || is_starting_ || is_finished_ || is_over;
}

void Cluster::lose_everything() {
  if (is_ending()) return;
  world_.trace.add("power cut", "everything");
  coordinator_->on_ended = nullptr;
  coordinator_->kill(/*with_machine=*/true);
  for (SimAgent* agent : agents()) {
    agent->on_ended = nullptr;
    kill_agent(*agent, /*with_machine=*/true);
  }
  start_again();
}

void Cluster::start_again() {
  is_starting_ = true;
  world_.loop.call_after(kRestartMs, [this] { start(BeginMode::kResume); });
}

void Cluster::start_coordinator(BeginMode mode) {
  if (coordinator_) dead_coordinators_.push_back(std::move(coordinator_));
  coordinator_ = std::make_unique<SimCoordinator>(world_, mode);
  coordinator_->on_last_words = [this](const std::string& words) { last_words_ = words; };
  coordinator_->on_ended = [this](Process&) { on_coordinator_ended(); };
}

void Cluster::on_coordinator_ended() {
  if (coordinator_->ending().signal == 0) {
    chosen_code_ = coordinator_->ending().exit_code;
    const bool may_fail = world_.disk.has_failed || !world_.was_damaged.empty();
    if (chosen_code_ == 70 && !may_fail)
      world_.fail("end", "the run failed although its disk never did: " + last_words_);
    // A coordinator that is not known could not be found: agents and workers only wait for it, and
    // hold nothing.
    const int64_t patience_ms = coordinator_->is_known() ? kLeaveMs : 0;
    world_.loop.call_after(patience_ms / 2, [this, start = starts_] {
      if (start != starts_) return;
      for (SimAgent* agent : agents()) agent->terminate();  // it missed the end
    });
    world_.loop.call_after(patience_ms / 2 + kInsistMs, [this, start = starts_] {
      if (start != starts_) return;
      for (SimAgent* agent : agents()) agent->kill_workers();
    });
    world_.loop.call_after(patience_ms, [this, start = starts_, patience_ms] {
      if (start == starts_) kill_left(patience_ms > 0);
    });
    return go_on_if_all_ended();
  }
  // deploy/cli/run/supervisor.cc: a take-over if a process may have found it, else the same mode
  // again.
  const BeginMode mode =
      coordinator_->is_known() || world_.endpoint ? BeginMode::kTakeOver : coordinator_->mode();
  world_.loop.call_after(20 + static_cast<int64_t>(world_.prng.below(500)),
                         [this, mode, start = starts_] {
                           if (start == starts_ && !is_starting_) start_coordinator(mode);
                         });
}

// As deploy/cli/run/supervisor.cc: kills agents that are still there long after the coordinator
// ended.
void Cluster::kill_left(bool is_trouble) {
  for (SimAgent* agent : agents()) {
    if (is_trouble && chosen_code_ == 0)
      world_.fail("end", agent->name() + " was still there long after the coordinator had ended");
    agent->kill();
  }
}

void Cluster::on_agent_ended() {
  world_.loop.post([this] { go_on_if_all_ended(); });
}

void Cluster::go_on_if_all_ended() {
  if (!chosen_code_ || !agents().empty() || is_starting_ || is_finished_ || !stuck_.empty()) return;
  world_.trace.add("run-ended", "supervisor", static_cast<uint64_t>(*chosen_code_));
  if (*chosen_code_ == 0) {
    is_finished_ = true;
    return;
  }
  // With 70 the run cannot tell which machine computes wrong. Its user has to.
  const bool is_hopeless = *chosen_code_ == 70 && !world_.was_damaged.empty();
  if (is_hopeless || (*chosen_code_ != 70 && *chosen_code_ != 75)) {
    stuck_ = "the run ended with " + std::to_string(*chosen_code_);
    return;
  }
  if (starts_ >= kMaxStarts) {
    stuck_ = "the run was started " + std::to_string(starts_) + " times";
    return;
  }
  start_again();
}

std::vector<SimWorker*> Cluster::workers() const {
  std::vector<SimWorker*> found;
  for (const SimAgent* agent : agents())
    for (SimWorker* worker : agent->living()) found.push_back(worker);
  return found;
}

std::vector<SimAgent*> Cluster::agents() const {
  std::vector<SimAgent*> found;
  for (const auto& agent : agents_)
    if (agent && agent->is_alive()) found.push_back(agent.get());
  return found;
}

SimWorker* Cluster::worker_named(const std::string& name) const {
  for (SimWorker* worker : workers())
    if (worker->name() == name) return worker;
  return nullptr;
}

void Cluster::command(const wire::Command& command, const std::function<void()>& on_yes) {
  if (!world_.endpoint) return;
  rpc::RpcClient::Options options;
  options.address = [address = world_.endpoint->control]() -> Result<rpc::Address> {
    return address;
  };
  options.token = kToken;
  options.give_up_after_ms = 10'000;
  commands_.emplace_back();
  const size_t index = commands_.size() - 1;
  rpc::RpcClient::Handlers handlers;
  handlers.on_ready = [this, index, command] {
    wire::Envelope envelope;
    *envelope.mutable_command() = command;
    (void)commands_[index]->send(envelope);
  };
  handlers.on_message = [this, index, on_yes](wire::Envelope&& envelope) {
    world_.trace.add("command-answer", "command", envelope.command_answer().ok(), 0,
                     envelope.command_answer().message());
    if (on_yes && envelope.command_answer().ok()) on_yes();
    world_.loop.post([this, index] { commands_[index]->close(); });
  };
  handlers.on_lost = [this, index](const Status&) {
    world_.loop.post([this, index] { commands_[index]->close(); });
  };
  handlers.on_failed = [](const Status&) {};
  commands_[index] =
      std::make_unique<rpc::RpcClient>(*command_transport_, std::move(options), handlers);
}

}  // namespace lockstep::sim
