// One node's agent: starts the workers, outlives them, starts them again, and tells the coordinator
// what it saw. It is what a launcher starts, so it must not end before the run does.
//
//   start N workers ──▶ watch ──▶ Goodbye: the run is over; who stays behind is killed
//                       │ │ │ │
//                       │ │ │ └ stop signal: SIGTERM to every worker; after the grace time SIGKILL
//                       │ │ └ a worker ended: told, and started again within its budgets
//                       │ └ KillWorker: one that does not answer; killed, if it is a child of ours
//                       └ SetWorkers: more are started; the coordinator leaves out who is surplus
//
// Invariants
//   1. run() returns only when every worker is reaped, whatever happens.
//   2. Every end of a worker is told at most once per connection to the coordinator, and again
//      after a reconnection: a restarted coordinator must not miss it. Which workers live is told
//      first.
//   3. While the coordinator is away workers are watched and started again all the same.
//   4. Without a connection it looks whether the run has a coordinator at all, and keeps one if not
//      (hosted_coordinator.h); run() returns only when that has ended, too.
//   5. An agent whose workers have all ended waits for Goodbye while the coordinator is there, and
//      limits::kCoordinatorAwayMs for one that was there, `leave_ms` for one that never was. When
//      it was told to stop: `stopped_wait_ms`, or not at all if no coordinator is there. The run
//      may go on without this node, which should be free for somebody else then.
//
// Thread-safety: one thread creates it and calls run(); the kernel's parent-death signal makes that
// the thread that must live.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/tls/run_token.h"
#include "comm/tls/tls_identity.h"
#include "comm/wire/job.pb.h"
#include "metrics/node/nvml_api.h"

namespace lockstep {

struct AgentOptions {
  std::string run_dir;
  std::string node;
  uint32_t workers = 1;
  uint32_t first_local_rank = 0;  // worker_slots.h
  uint32_t agents_here = 1;
  uint32_t own_gpus = 0;
  std::string log_node = {};
  int64_t stop_delay_ms = 0;  // from a stop signal to the workers' SIGTERM: the coordinator, which
                              // was told too, is given the time to stop all of them together
  int64_t grace_ms = 60'000;  // from then to SIGKILL
  int64_t leave_ms = 10'000;  // from Goodbye to SIGKILL
  int64_t stopped_wait_ms = 3'000;  // as long as a coordinator stays after its last Goodbye
  uint32_t max_crashes = 0;         // restarts of one worker within limits::kRestartWindowMs
  uint32_t max_preemptions = 0;     // the same after it alone was told to go
  std::string worker_program;       // path of lockstep-worker
  std::string coordinator_program;  // path of lockstep-coordinator
  std::string nvml_library = nvml::kLibrary;  // that knows this machine's GPUs
  rpc::Token token;
  std::shared_ptr<rpc::TlsIdentity> tls;  // null: control is in the clear
  wire::JobSpec job;
};

class Agent {
 public:
  Agent(AgentOptions options, Logger& logger);
  ~Agent();

  // Until the run is over here. The exit code for the process: that of the coordinator's Goodbye,
  // else of the first worker that failed and was not started again, else 0.
  int run();

  // How run() came to its end.
  bool heard_goodbye() const;
  bool was_stopped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
