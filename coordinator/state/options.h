// All that decide() knows besides the state and the event: the resolved job, and deadlines. It is
// fixed for one term. Plain values, no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/evaluation/check_after.h"
#include "comm/run/job/predictions.h"
#include "comm/run/plan/step_plan.h"
#include "comm/wire/control.pb.h"
#include "coordinator/journal/journal_entry.h"
#include "coordinator/state/script_end.h"

namespace lockstep::coordinator {

inline constexpr int64_t kBarLeases = 10;

struct Options {
  wire::JobSpec job;                    // train.slots is resolved, never 0
  wire::DataFacts facts;                // every member's data must match these, unless `open`
  std::string run_dir;                  // absolute, as in messages
  std::vector<IdentityEntry> identity;  // frozen when the first generation starts
  std::vector<IdentityEntry> script;    // its part that a script says of itself; empty: not known
  RunShape shape;                       // from job and facts
  uint64_t total_steps = 0;             // the run ends after so many applied steps
  bool has_edges = false;               // the script's loop is over run.epochs()

  uint32_t workers = 1;      // members to wait for before the first generation
  uint32_t min_workers = 1;  // with fewer, the run writes a checkpoint and waits for more

  int64_t start_timeout_ms = 120'000;   // for all workers to register at the first start
  int64_t min_wait_ms = 120'000;        // for min_workers to register at a later one
  int64_t prepare_timeout_ms = 10'000;  // for all promises
  int64_t lease_ms = 10'000;            // after so much silence a member counts as dead
  int64_t hang_ms = 0;                  // without progress, the slowest is evicted; 0: never
  int64_t reconnect_ms = 250;           // after a closed connection, if no agent can say more
  int64_t proof_ms = 2'000;          // after a closed connection, if an agent will name the cause
  int64_t bar_ms = 100'000;          // how long an eviction without proof keeps out; then doubles
  int64_t grace_ms = 30'000;         // from a stop to the last Leave
  int64_t end_timeout_ms = 120'000;  // from the final checkpoint, or the writer's Leave, on

  // The workers have to say first what the run is (decide/open_term.h). Until then `shape` and
  // `total_steps` are stand-ins that no report may show: one sample a slot for an open batch, one
  // step an epoch for open facts.
  bool is_open_term() const { return is_batch_open() || is_script_open(); }
  bool is_batch_open() const { return job.train().global_batch() == 0; }
  bool is_script_open() const { return is_script(job.model()) && script.empty(); }
  bool exact() const { return job.comm().numerics() == "exact"; }
};

// Takes deadlines and sizes from the job. REQUIRES: the job's shape is valid, slots are resolved.
Options make_options(const wire::JobSpec& job, const wire::DataFacts& facts, std::string run_dir);

// Does the same for a run that may have begun before: V, G, the facts of a script's data and what
// it says of itself come from the journal where job and facts leave them open. `stored`: the
// identity in the journal. kBadData if the journal does not know the data of a run that has begun.
Result<Options> resolve_options(wire::JobSpec job, wire::DataFacts facts,
                                const std::vector<IdentityEntry>& stored, std::string run_dir);

// Whether the run, which its script has ended at `end`, evaluates after `step` applied steps.
bool is_evaluated_after(Step step, const Options& options,
                        const std::optional<ScriptEnd>& end = {});

// Whether the script has code to run after `step` applied steps of a run that ends after `end`
// (Phase::kEdge).
bool has_edge_after(Step step, Step end, const Options& options);

// Where members compare their work because the run may end there.
PossibleEnds possible_ends(const Options& options, const std::optional<ScriptEnd>& end = {});

}  // namespace lockstep::coordinator
