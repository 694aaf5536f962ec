// What decide() may know besides the state and the event: the resolved job, and deadlines. Fixed
// for one term. Plain values, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/wire/control.pb.h"
#include "coordinator/journal/journal_entry.h"
#include "data/order/step_plan.h"

namespace lockstep::coordinator {

inline constexpr int64_t kBarLeases = 10;

struct Options {
  wire::JobSpec job;                    // train.slots is resolved, never 0
  wire::DataFacts facts;                // what every member's data must be
  std::string run_dir;                  // absolute, as in messages
  std::vector<IdentityEntry> identity;  // frozen when the first generation starts
  data::RunShape shape;                 // from job and facts
  uint64_t total_steps = 0;             // the run ends when so many are applied

  uint32_t workers = 1;      // members to wait for before the first generation
  uint32_t min_workers = 1;  // with fewer the run writes a checkpoint and waits for more

  int64_t start_timeout_ms = 120'000;   // for all workers to register at the first start
  int64_t min_wait_ms = 120'000;        // for min_workers to register at a later one
  int64_t prepare_timeout_ms = 10'000;  // for all promises
  int64_t lease_ms = 10'000;            // silence that makes a death
  int64_t hang_ms = 0;                  // without any progress, who is behind is out; 0: never
  int64_t reconnect_ms = 250;           // closed control socket, and no agent that could tell more
  int64_t proof_ms = 2'000;             // the same with a connected agent: it will name the cause
  int64_t bar_ms = 100'000;             // an eviction without proof keeps out so long, then doubles
  int64_t grace_ms = 30'000;            // from a stop to the last Leave
  int64_t end_timeout_ms = 120'000;     // from the final checkpoint, or the writer's Leave, on

  // train.global_batch auto, and nobody has said yet what that is (auto_batch.h). `shape` has one
  // sample a slot then.
  bool is_batch_open() const { return job.train().global_batch() == 0; }
  bool exact() const { return job.comm().numerics() == "exact"; }
  bool has_eval() const { return !job.data().eval().path().empty(); }
};

// Deadlines and sizes from the job. REQUIRES: shape of the job valid, slots resolved.
Options make_options(const wire::JobSpec& job, const wire::DataFacts& facts, std::string run_dir);

// What comes after `step` applied steps.
Phase phase_after(Step step, const std::vector<EvalEntry>& evals, const Options& options);

}  // namespace lockstep::coordinator
