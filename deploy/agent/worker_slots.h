// The workers of one agent by place: which run, which wait for their restart, and what is left of
// their budgets. Starts and signals processes; decides with decide_after_exit().
//
// A place numbers the workers of this agent from 0. The local rank numbers the workers of the host:
// with several agents there it is first_local_rank + place * agents_here. A worker's GPU has the
// number of its local rank, modulo the visible GPUs. An agent with GPUs of its own deals them out
// by place, and begins at another GPU than its neighbours, in case some of them were given the
// same. Once a worker of a place has told the UUID of its GPU, all later ones of the place get that
// GPU, or none: numbers move when a GPU falls off the bus.
//
// A place whose GPU is unfit (set_unfit) and whose worker leaves is held: it stays empty, and
// counts as one of the wanted, until its GPU is fit again, fewer are wanted, or the coordinator
// needs a worker there all the same (release_unfit). A crash there ends in a restart as anywhere:
// the coordinator knows whether it needs the worker.
//
// Invariants
//   1. A place has at most one living process, and its output always goes to the same file.
//   2. A restart counts against the budget of its cause; a resize counts against none.
//   3. A script that dies before it registers dies soon after its start, whatever the clock says:
//      importing its modules takes long.
//
// Thread-safety: one thread, on which the processes' parent-death signal hangs (process.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/base/work_in_hand.h"
#include "deploy/agent/exit_decision.h"
#include "deploy/agent/process.h"
#include "deploy/agent/restart_budget.h"
#include "deploy/agent/worker_launch.h"

namespace lockstep {

struct WorkerSlotsOptions {
  WorkerLaunch worker;
  std::string run_dir;
  std::string node;          // that the workers name as theirs
  uint32_t max_crashes = 0;  // restarts of one worker within limits::kRestartWindowMs
  uint32_t max_preemptions = 0;
  uint32_t first_local_rank = 0;
  uint32_t agents_here = 1;   // of this run, on this host
  uint32_t own_gpus = 0;      // that only this agent sees; 0: all on this host see the same
  std::string log_node = {};  // in the names of logs, where nodes share a directory; empty: none
  std::string preload = {};   // the library of cluster.malloc (allocator.h); empty: none
  bool is_mpi_rank = false;   // of mpirun, whose MPI world one process of each rank can enter, once
};

// A worker has ended.
struct WorkerEnd {
  uint32_t place = 0;
  uint32_t local_rank = 0;
  pid_t pid = 0;
  uint64_t process = 0;  // WorkerSlots::Living
  ProcessEnd end;
  std::string last_words;
  InHand in_hand;
  ExitDecision decision;
};

class WorkerSlots {
 public:
  WorkerSlots(WorkerSlotsOptions options, Logger& logger)
      : options_(std::move(options)), logger_(logger) {}

  // Sets the number of wanted workers. Returns the places to start(). Surplus workers need no act
  // here: the coordinator leaves them out, and they end by themselves.
  std::vector<uint32_t> set_wanted(uint32_t workers);
  uint32_t wanted() const { return wanted_; }

  Status start(uint32_t place, int64_t now_ms);

  // Decides about the place of a reaped process; none if it was no worker. After a decision to
  // restart, the place waits for start() or forget_restarts().
  std::optional<WorkerEnd> ended(const Reaped& reaped, bool run_is_over, bool stop_requested,
                                 int64_t now_ms);
  // A failed start counts as a crash.
  WorkerEnd not_started(uint32_t place, const Status& why, int64_t now_ms);

  bool waits_for_restart(uint32_t place) const { return slots_[place].waits; }

  // A place that is wanted or has a worker, and what is known of its GPU.
  struct GpuPlace {
    uint32_t place = 0;
    uint32_t local_rank = 0;
    uint32_t gpu = 0;       // its number
    std::string uuid = {};  // WorkInHand::gpu(); empty: not told yet
    pid_t pid = 0;          // 0: no worker is there
  };
  std::vector<GpuPlace> gpu_places() const;
  // From now on no worker that leaves the place is followed by another one.
  void set_unfit(uint32_t place);
  // True if the place was held: start() must follow.
  bool set_fit(uint32_t place);
  // The held place of this local rank, which is held no more, although its GPU is still unfit:
  // start() must follow. None: no such place is held.
  std::optional<uint32_t> release_unfit(uint32_t local_rank);
  // Holds a place of set_wanted() that is unfit. False if it is fit: start() must follow.
  bool hold_if_unfit(uint32_t place);

  void forget_restarts();

  // True if no place has a process or a restart to come.
  bool all_ended() const;
  struct Living {
    pid_t pid = 0;
    uint64_t process = 0;  // drawn for it: no other process has the same, whatever its pid
  };
  std::vector<Living> living() const;

  // Shortens what workers have printed and logged (log_bound.h).
  void bound_logs();
  void signal_all(int signal) const;
  // Sends SIGKILL; false if the process is none of the running workers.
  bool kill(pid_t pid) const;
  // Signals the workers that may not hear of the end of the run: those started since `ms`, and
  // scripts that have not registered.
  void signal_unheard(int64_t ms, int signal) const;

 private:
  struct Slot {
    pid_t pid = 0;         // 0: none is running
    uint64_t process = 0;  // of the last one
    bool waits = false;
    bool is_unfit = false;
    bool is_held = false;
    uint64_t unfit_process = 0;  // the last one that was there while it was unfit
    int64_t started_ms = 0;
    int64_t output_begin = 0;      // of this process, in its local rank's file
    std::string log_trouble = {};  // the last one that was told
    std::optional<WorkInHand> in_hand;
    std::string gpu_uuid = {};  // of the place; empty: not known yet
    uint32_t quick_deaths = 0;
    RestartBudget crashes;
    RestartBudget preemptions;
  };

  uint32_t occupied() const;
  bool leaves_for_gpu(const Slot& slot, const ProcessEnd& end) const;
  bool still_starts(const Slot& slot) const;
  uint32_t local_rank(uint32_t place) const;
  uint32_t gpu(uint32_t place) const;
  std::string name(uint32_t place) const;  // of its logs
  std::string output_path(uint32_t place) const;
  ExitDecision decide(Slot& slot, const ProcessEnd& end, bool run_is_over, bool stop_requested,
                      int64_t now_ms);

  WorkerSlotsOptions options_;
  Logger& logger_;
  bool is_mpi_left_ = true;  // no worker was started into the MPI world
  uint32_t wanted_ = 0;
  uint32_t surplus_deaths_ = 0;  // of workers that were not wanted any more, since wanted_ changed
  std::vector<Slot> slots_;
};

}  // namespace lockstep
