// One node's agent: starts and restarts the node's workers, and tells the coordinator how they end.
// A launcher starts the agent, so the agent must not end before the run does.
//
//   start N workers ──▶ watch ──▶ Goodbye: the run is over; workers that stay are killed
//                       │ │ │ │
//                       │ │ │ └ stop signal: SIGTERM to every worker; after the grace time SIGKILL
//                       │ │ │   SIGTSTP, SIGCONT: the workers stop and continue with the agent
//                       │ │ │   SIGUSR2: the coordinator has ended. An agent without a connection
//                       │ │ │   that has not heard Goodbye stops, as at a stop signal
//                       │ │ └ a worker ended: told, and started again within its budgets
//                       │ └ KillWorker: a worker that does not answer; killed if it is our child
//                       └ SetWorkers: starts more; the coordinator leaves out surplus workers
//
// Invariants
//   1. run() returns only when every worker is reaped, whatever happens.
//   2. The agent tells every end of a worker once per connection to the coordinator, after the list
//      of living workers. It tells it again after a reconnection, for a restarted coordinator.
//   3. It watches and restarts workers also while the coordinator is away.
//   4. Without a connection it looks whether the run has a coordinator, and keeps one if not
//      (hosted_coordinator.h). run() then returns only when that coordinator has ended, too.
//   5. On machines with GPUs it looks before the first worker and once a minute whether they are
//      fit (gpu_watch.h), unless cluster.gpu_health is off. It tells the coordinator what is not,
//      and again after a reconnection, after the ends of workers. With `act` an unfit place gets no
//      first worker, and a worker that leaves it is not replaced before the GPU is fit.
//   6. Where a cloud is (cloud_watch.h), it asks whether this machine is to be taken away. Then its
//      workers leave between two steps, and it starts none any more, but stays: a coordinator that
//      it hosts goes on while the machine does.
//   7. An agent whose workers have all ended waits for Goodbye while the coordinator is there. It
//      waits limits::kCoordinatorAwayMs for one that went away, `absent_wait_ms` for one that never
//      came.
//      Told to stop, it waits `stopped_wait_ms`, or not at all if no coordinator is there: the run
//      may go on without this node, which should then be free for others.
//
// Thread-safety: one thread creates it and calls run(); the kernel's parent-death signal makes that
// the thread that must live.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/tls/run_token.h"
#include "comm/tls/tls_identity.h"
#include "deploy/agent/cloud_watch.h"
#include "deploy/agent/gpu_watch.h"
#include "deploy/agent/worker_launch.h"
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
  int64_t stop_delay_ms = 0;        // from a stop signal to the workers' SIGTERM: time for the
                                    // coordinator, which got the signal too, to stop all together
  int64_t grace_ms = 60'000;        // from then to SIGKILL
  int64_t leave_ms = 10'000;        // from Goodbye to SIGKILL
  int64_t absent_wait_ms = 10'000;  // without workers, for a coordinator that never came
  int64_t stopped_wait_ms = 3'000;  // a coordinator stays this long after its last Goodbye
  uint32_t max_crashes = 0;         // restarts of one worker within limits::kRestartWindowMs
  uint32_t max_preemptions = 0;     // the same, after it alone was told to go
  WorkerLaunch worker;
  std::string preload = {};                   // the library of cluster.malloc; empty: none
  std::string coordinator_program;            // path of lockstep-coordinator
  std::string nvml_library = nvml::kLibrary;  // tells about this machine's GPUs
  bool uses_gpus = false;                     // its workers compute on some
  int64_t gpu_look_ms = limits::kGpuLookMs;
  GpuOfNumber gpu_of_number = gpu_of_driver;
  MetadataService metadata = {};  // no cloud: the agent asks nothing
  // Repeats a line of the agent's log to the person at the console if no other process can; may be
  // empty.
  std::function<void(const std::string&)> tell = {};
  rpc::Token token;
  std::shared_ptr<rpc::TlsIdentity> tls;  // null: control is in the clear
  wire::JobSpec job;
};

class Agent {
 public:
  Agent(AgentOptions options, Logger& logger);
  ~Agent();

  // Returns the exit code for the process when the run is over here: the code of the coordinator's
  // Goodbye, else of the first worker that failed and was not restarted, else 0.
  int run();

  // How run() ended.
  bool heard_goodbye() const;
  bool was_stopped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
