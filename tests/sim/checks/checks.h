// The invariants of PROTOCOL.md, checked from outside: one Check for each group, in a file of its
// own.
//
// Thread-safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/sim/cluster/cluster.h"
#include "tests/sim/world/world.h"

namespace lockstep::sim {

// The journal on the disk, folded, as a reader that trusts only commits sees it.
// ledger_view.cc
class LedgerView {
 public:
  void add(const Disk::Entries& entries);

  const std::map<Generation, coordinator::LedgerRow>& rows() const { return rows_; }
  // The surviving row that covers a step; null if there is none.
  const coordinator::LedgerRow* row_of(Step step) const;
  bool covers(Generation generation, Step step) const;
  const coordinator::StepEntry* step(Generation generation, Step step) const;
  // Complete steps of the surviving lineage, from 0 without a gap.
  Step completed() const;
  bool has_batch(MemberId member, uint64_t batch) const {
    return batches_.count({member, batch}) != 0;
  }
  // Digests of all slots, as the first reporter gave them; null if no member reported.
  const wire::StepRecord* digests(Generation generation, Step step) const;
  const std::map<std::string, coordinator::CheckpointEntry>& checkpoints() const {
    return checkpoints_;
  }
  // Evaluations of the surviving lineage.
  const std::map<Step, coordinator::EvalEntry>& evals() const { return evals_; }

  // The facts that a generation is told when it starts. One commit may hold several decisions: a
  // rollback or an evaluation that follows the start in the commit was decided later.
  struct AtStart {
    std::map<Step, coordinator::EvalEntry> evals;
    std::map<std::string, coordinator::CheckpointEntry> checkpoints;
  };
  // REQUIRES: the newest commit starts this generation.
  const AtStart& at_start(Generation generation) const { return at_start_.at(generation); }

 private:
  void roll_back(const coordinator::RollbackEntry& entry);

  std::map<Generation, coordinator::LedgerRow> rows_;
  std::map<std::pair<Generation, Step>, coordinator::StepEntry> steps_;
  std::map<std::pair<Generation, Step>, wire::StepRecord> digests_;
  std::set<std::pair<MemberId, uint64_t>> batches_;
  std::map<std::string, coordinator::CheckpointEntry> checkpoints_;
  std::map<Step, coordinator::EvalEntry> evals_;
  std::map<Generation, AtStart> at_start_;  // by generations that the newest commit starts
};

using SharedLedger = std::shared_ptr<LedgerView>;

// Tells which members' state can be compared with the undisturbed run's: no state while a damage is
// in the lineage, and no state of a member that is left behind. The state's check keeps it up to
// date for the other checks. check_state.cc
struct Judged {
  Generation tainted_through = 0;
  bool covers(const World& world, Generation generation) const {
    return !world.is_left_behind(generation) && generation > tainted_through &&
           world.damaged.empty();
  }
};
using SharedJudged = std::shared_ptr<Judged>;

// I6: two members at the same step of one lineage have the same state, which is the undisturbed
// run's.
// check_state.cc
std::unique_ptr<Check> make_state_check(World& world, SharedJudged judged);
// I3, I4, I7: numbers only grow, at most one generation is started, and nothing of an older
// generation takes effect after the promise. check_generations.cc
std::unique_ptr<Check> make_generation_check(World& world);
// Prepare, promise, start: no member starts before all have answered, nor at an earlier step than
// its own answer. check_starts.cc
std::unique_ptr<Check> make_start_check(World& world, Cluster& cluster);
// No member counts as dead without a reason. check_evictions.cc
std::unique_ptr<Check> make_eviction_check(World& world, SharedLedger ledger);
// I1, I2, I5: the ledger's rows follow each other, and every step of the lineage was applied in the
// generation that the ledger has for it. check_lineage.cc
std::unique_ptr<Check> make_lineage_check(World& world, SharedLedger ledger);
// Acknowledged data stay: records, checkpoints, history. check_records.cc
std::unique_ptr<Check> make_records_check(World& world, Cluster& cluster, SharedLedger ledger);
// Slots that policy leaves out: every member hears of them in time, no member computes or counts
// them, and damage by their samples does not survive. check_skips.cc
std::unique_ptr<Check> make_skip_check(World& world, SharedLedger ledger);
// Evaluations and train.patience: every member knows the evaluations before its state, and ends
// where the undisturbed run ends. check_evaluations.cc
std::unique_ptr<Check> make_evaluation_check(World& world, SharedLedger ledger,
                                             SharedJudged judged);
// Edges: every member runs the code between two epochs once, in order, after its evaluation is in
// the journal, and no step follows without it. check_edges.cc
std::unique_ptr<Check> make_edge_check(World& world, SharedJudged judged);
// checkpoint.best: for every point that the run may go back to, the best checkpoint up to this
// point is kept. check_best.cc
std::unique_ptr<Check> make_best_check(World& world, SharedLedger ledger);
// An end by the script: every member ends there, no member goes beyond it once it is journalled,
// and the run ends there only for the script's word. check_script_end.cc
std::unique_ptr<Check> make_script_end_check(World& world);
// The identity of a run stands in the journal before any member trains, once and for all.
// check_identity.cc
std::unique_ptr<Check> make_identity_check(World& world, Cluster& cluster);
// Commands that were answered with yes hold in every later term. check_orders.cc
std::unique_ptr<Check> make_order_check(World& world, Cluster& cluster);
// The coordinator goes by what agents say of their GPUs, also when they take it back.
// check_notices.cc
std::unique_ptr<Check> make_notice_check(World& world, Cluster& cluster);
// Liveness: while nothing is under way, the run is what was asked for. check_rest.cc
std::unique_ptr<Check> make_rest_check(World& world, Cluster& cluster);
// At the end: records that agree with the plan prove all steps, and no member is left. check_end.cc
std::unique_ptr<Check> make_end_check(World& world, Cluster& cluster, SharedLedger ledger);

void add_all_checks(World& world, Cluster& cluster);

}  // namespace lockstep::sim
