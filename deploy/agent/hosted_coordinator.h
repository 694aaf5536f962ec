// The coordinator that an agent keeps after the machine of the last coordinator was lost.
//
//   no connection ──▶ watch: pulse and claims (comm/run/directory/pulse.h)
//                       │ changes: a coordinator is there, and will be found
//                       │ ended: the run is over
//                       └ still for kStillMs, and we may ──▶ start --take-over --after TERM
//                           ended with 75: another agent was faster ──▶ watch
//                           died ──▶ started again, within its budget
//                           hangs (its pulse stands still) ──▶ killed, which is a death
//
// Invariants
//   1. At most one coordinator of ours lives.
//   2. A coordinator whose budget is spent, or that cannot work, is not restarted here; the agent
//      waits for the coordinator of another agent.
//
// Thread-safety: one thread, the one with the parent-death signal (process.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/limits.h"
#include "comm/base/log.h"
#include "comm/run/directory/pulse.h"
#include "deploy/agent/process.h"
#include "deploy/agent/restart_budget.h"

namespace lockstep {

struct HostedCoordinatorOptions {
  std::string program;
  std::string run_dir;
  std::string node;
  std::string log_node;  // worker_slots.h
  // False if the coordinator has a name (comm.advertise), under which others would not find ours.
  // The system that gave the name, such as Kubernetes, starts another one there.
  bool may_claim = true;
};

class HostedCoordinator {
 public:
  HostedCoordinator(HostedCoordinatorOptions options, Logger& logger);

  // Looks and acts while there is no connection. Returns the run's exit code once it has ended.
  std::optional<int> look(int64_t now_ms);
  void connected() { watch_.forget(); }

  // The decision about a reaped process.
  struct Ended {
    bool was_ours = false;
    std::optional<int64_t> restart_after_ms;  // then start_again()
  };
  Ended ended(const Reaped& reaped, int64_t now_ms);
  void start_again(int64_t now_ms);

  bool is_running() const { return pid_ > 0; }
  void signal(int signal) const;

 private:
  bool serves() const;
  void start(const std::vector<std::string>& words, int64_t now_ms);

  HostedCoordinatorOptions options_;
  std::string seat_;
  Logger& logger_;
  PulseWatch watch_;
  pid_t pid_ = 0;
  bool is_spent_ = false;
  int64_t started_ms_ = 0;
  uint32_t quick_deaths_ = 0;
  RestartBudget budget_{limits::kSupervisedRestarts, limits::kRestartWindowMs};
};

}  // namespace lockstep
