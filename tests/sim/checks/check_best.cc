// checkpoint.best, after every commit, and so at every rollback. For each point that the run may go
// back to (every checkpoint, and the end of the lineage) two checkpoints are kept and on the disk:
//
//  - the best one of all that the lineage ever had until there
//  - the newest one until the best evaluation, from which a run can make that evaluation's again
//
// The point matters because a rollback to it makes the part until there the lineage.
//
// A generation that starts is told which checkpoint is the best.
#include <algorithm>
#include <set>
#include <string>

#include "coordinator/state/evaluations.h"
#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::CheckpointEntry;
using coordinator::CheckpointState;

class BestCheck final : public Check {
 public:
  BestCheck(World& world, SharedLedger ledger)
      : world_(world), ledger_(std::move(ledger)), by_(best_by(world_.options.best)) {}

  void on_commit(const Disk::Entries& entries) override {
    if (!keeps_best(world_.options.best)) return;
    check(coordinator::kNoStep, "the end");
    for (const auto& [name, entry] : ledger_->checkpoints())
      if (entry.state == CheckpointState::kComplete) check(entry.step, name);
    for (const coordinator::JournalEntry& entry : entries) {
      const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry);
      if (generation == nullptr) continue;
      if (generation->state == coordinator::GenerationState::kPlanned)
        planned_.insert(generation->generation);
      if (generation->state == coordinator::GenerationState::kStarted &&
          planned_.count(generation->generation) == 0)
        check_start(*generation);
    }
  }

 private:
  // The best evaluation until `step` that has a checkpoint. With `with_dropped` a dropped one
  // counts.
  EvalMark best_until(Step step, const LedgerView::AtStart& known, bool with_dropped) const {
    EvalMark best;
    for (const auto& [name, entry] : known.checkpoints) {
      const auto eval = known.evals.find(entry.step);
      const bool counts = entry.state == CheckpointState::kComplete ||
                          (with_dropped && entry.state == CheckpointState::kDropped);
      if (entry.step > step || !counts || eval == known.evals.end()) continue;
      const EvalMark mark = coordinator::mark_of(eval->second);
      // The map is in the order of names, which is the order of steps.
      if (is_better(mark, best, by_)) best = mark;
    }
    return best;
  }

  Step best_evaluation_until(Step step) const {
    EvalTrack track;
    for (const auto& [applied, eval] : ledger_->evals())
      if (applied <= step) track.add(coordinator::mark_of(eval), by_);
    return track.best.step;
  }

  // 0: there was none.
  Step newest_until(Step step) const {
    Step newest = 0;
    for (const auto& [name, entry] : ledger_->checkpoints())
      if (entry.state != CheckpointState::kRolledBack && entry.step <= step)
        newest = std::max(newest, entry.step);
    return newest;
  }

  bool is_left(Step step) const {
    for (const auto& [name, entry] : ledger_->checkpoints())
      if (entry.step == step && entry.state == CheckpointState::kComplete &&
          world_.disk.has_checkpoint(name))
        return true;
    return false;
  }

  void check(Step until, const std::string& where) {
    const LedgerView::AtStart now{ledger_->evals(), ledger_->checkpoints()};
    const Step best = best_until(until, now, /*with_dropped=*/true).step;
    if (best > 0 && !is_left(best))
      world_.fail("best", "the best checkpoint until " + where + ", that of step " +
                              std::to_string(best) + ", is gone");
    const Step evaluated = best_evaluation_until(until);
    const Step way = newest_until(evaluated);
    if (way > 0 && !is_left(way))
      world_.fail("best", "the checkpoint of step " + std::to_string(way) +
                              ", the newest until the best evaluation until " + where +
                              ", that after step " + std::to_string(evaluated) + ", is gone");
  }

  void check_start(const coordinator::GenerationEntry& entry) {
    wire::Start start;
    if (!start.ParseFromString(entry.start))
      return world_.fail("best", "a start in the journal cannot be read");
    const Step told = start.evals().kept().step();
    const Step best = best_until(start.resume().step(), ledger_->at_start(entry.generation),
                                 /*with_dropped=*/false)
                          .step;
    if (told != best)
      world_.fail("best", "generation " + std::to_string(entry.generation) +
                              " is told that the best checkpoint is that of step " +
                              std::to_string(told) + ", and it is that of step " +
                              std::to_string(best));
  }

  World& world_;
  const SharedLedger ledger_;
  const BestBy by_;
  std::set<Generation> planned_;
};

}  // namespace

std::unique_ptr<Check> make_best_check(World& world, SharedLedger ledger) {
  return std::make_unique<BestCheck>(world, std::move(ledger));
}

}  // namespace lockstep::sim
