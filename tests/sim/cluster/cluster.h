// One run on simulated machines. A supervisor starts the coordinator and the agents, and starts a
// dead coordinator again with --take-over. If the run ends with 75 or 70, it starts everything
// again with --resume, as a user would.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/cluster/agent.h"
#include "tests/sim/cluster/coordinator.h"
#include "tests/sim/world/world.h"

namespace lockstep::sim {

class Cluster {
 public:
  explicit Cluster(World& world);
  ~Cluster();

  // True if the run ended with 0 and no process is left.
  bool is_finished() const { return is_finished_; }
  // Why the run can never finish; empty if it can.
  const std::string& stuck() const { return stuck_; }

  // ---- for faults and checks
  SimCoordinator* coordinator() const { return coordinator_.get(); }  // may be dead
  // The living coordinator's server; null if none lives, or if it does not serve yet.
  const coordinator::RunServer* server() const;
  std::vector<SimWorker*> workers() const;  // living
  std::vector<SimAgent*> agents() const;    // living
  SimWorker* worker_named(const std::string& name) const;
  uint32_t starts() const { return starts_; }
  // A machine is lost, or its agent is killed: agent and workers end at once.
  void lose_node(size_t node, bool with_machine = true);
  void bring_back_node(size_t node);
  // Everything ends at once, the supervisor too. Its user starts it again.
  void lose_everything();
  // The run has ended or is about to: newcomers come too late.
  bool is_ending() const;
  // `lockstep scale`, `lockstep drain`: a connection that sends one command.
  // `on_yes`: the coordinator has answered that it will happen.
  void command(const wire::Command& command, const std::function<void()>& on_yes = nullptr);

  World& world() { return world_; }

 private:
  void start(coordinator::BeginMode mode);
  void start_coordinator(coordinator::BeginMode mode);
  void on_coordinator_ended();
  void kill_left(bool is_trouble);
  static void kill_agent(SimAgent& agent, bool with_machine);
  void on_agent_ended();
  void go_on_if_all_ended();
  void start_again();

  World& world_;
  std::unique_ptr<SimCoordinator> coordinator_;
  std::vector<std::unique_ptr<SimCoordinator>> dead_coordinators_;
  std::vector<std::unique_ptr<SimAgent>> agents_;  // by node
  std::vector<std::unique_ptr<SimAgent>> dead_agents_;
  std::unique_ptr<rpc::MemoryTransport> command_transport_;
  std::vector<std::unique_ptr<rpc::RpcClient>> commands_;
  std::optional<int> chosen_code_;  // if the coordinator ended by itself
  std::string last_words_;          // of the last coordinator that ended
  uint32_t starts_ = 0;
  bool is_starting_ = false;  // the run ended, and its user is about to start it again
  bool is_finished_ = false;
  std::string stuck_;
};

}  // namespace lockstep::sim
