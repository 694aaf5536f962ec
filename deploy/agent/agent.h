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

#include <memory>

#include "comm/base/log.h"
#include "deploy/agent/agent_options.h"

namespace lockstep {

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
