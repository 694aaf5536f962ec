// A simulated coordinator process: the real term, RunServer, decide() and history over the
// simulated disk and network. Terms follow each other as in coordinator/main.cc.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "coordinator/serve/run_server.h"
#include "coordinator/term/term.h"
#include "tests/sim/world/process.h"
#include "tests/sim/world/world.h"

namespace lockstep::sim {

class SimCoordinator final : public Process {
 public:
  SimCoordinator(World& world, coordinator::BeginMode mode);
  ~SimCoordinator() override;

  coordinator::BeginMode mode() const { return mode_; }
  // True if coordinator.json names this process.
  bool is_known() const { return world_.endpoint && world_.endpoint->pid == pid(); }
  const coordinator::RunServer* server() const { return server_.get(); }
  void request_stop();  // SIGTERM
  // Gets the reason for which the coordinator ended by itself.
  std::function<void(const std::string&)> on_last_words;

 private:
  void vanish() override;
  void serve_term(coordinator::BeginMode mode);
  Status begin(coordinator::BeginMode mode);
  Status open_history(const coordinator::Beginning& beginning);
  void check_that_losses_are_known(const coordinator::Options& options);
  // Called from inside a commit, whose caller is still on the stack.
  void die_in_commit();

  const coordinator::BeginMode mode_;
  const SimClock clock_;
  std::unique_ptr<Logger> logger_;
  std::unique_ptr<rpc::MemoryTransport> transport_;
  std::unique_ptr<CoordinatorMetrics> metrics_;
  std::unique_ptr<coordinator::Journal> journal_;
  std::unique_ptr<coordinator::History> history_;
  std::unique_ptr<coordinator::EvalFile> evals_;
  std::unique_ptr<coordinator::RunServer> server_;
  coordinator::Experience experience_;  // of the previous term
  rpc::Address address_;
};

}  // namespace lockstep::sim
