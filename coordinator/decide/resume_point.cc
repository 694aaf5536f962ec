// From which point a generation can start, and whether every step before it can be proven.
#include <algorithm>
#include <set>

#include "comm/base/planted_bug.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

// An answer counts if its member is one of the last started generation and the surviving lineage
// went through its state. Otherwise it is unknown what the member holds.
bool counts(const Turn& turn, const Member& member) {
  const State& state = turn.state;
  if (!member.answer || !member.answer->applied || !is_source(state, member)) return false;
  const auto era = state.lineage.find(member.answer->lived);
  if (era == state.lineage.end() || era->second.row.rolled_back) return false;
  const LedgerRow& row = era->second.row;
  const Step step = member.answer->applied->step;
  return step >= row.first.step && (!row.last || step <= row.last->step);
}

}  // namespace

std::optional<ResumePoint> best_answer(const Turn& turn) {
  std::optional<ResumePoint> best;
  for (MemberId id : turn.state.ranks) {
    const Member& member = turn.state.members.at(id);
    if (!counts(turn, member)) continue;
    const bool is_least = best && LOCKSTEP_BUG(kResumeAfterSmallest);
    best =
        is_least ? std::min(best, member.answer->applied) : std::max(best, member.answer->applied);
  }
  return best;
}

bool holds(const Turn& turn, const Member& member, const ResumePoint& point) {
  return counts(turn, member) && member.answer->applied->step == point.step;
}

std::string unprovable_step(const Turn& turn, Step resume) {
  const State& state = turn.state;
  if (resume <= state.completed || LOCKSTEP_BUG(kHoleNotSeen)) return {};
  std::vector<bool> is_proven(resume - state.completed);
  for (const auto& [step, pending] : state.pending) {
    if (step >= state.completed && step < resume) is_proven[step - state.completed] = true;
  }
  for (MemberId id : state.ranks) {
    for (const WorkedSteps& worked : state.members.at(id).worked) {
      const auto era = state.lineage.find(worked.generation);
      if (era == state.lineage.end()) continue;
      for (Step step = std::max(worked.first, state.completed);
           step < std::min(worked.last, resume); ++step) {
        if (era->second.row.covers(step)) is_proven[step - state.completed] = true;
      }
    }
  }
  const auto hole = std::find(is_proven.begin(), is_proven.end(), false);
  if (hole == is_proven.end()) return {};
  const Step step = state.completed + static_cast<Step>(hole - is_proven.begin());
  return "all workers that had a record of step " + std::to_string(step) +
         " are dead, so nothing proves what was trained in it";
}

bool roll_back_in_place(Turn& turn, const ResumePoint& to) {
  State& state = turn.state;
  // Only equal bits make the redone step the one that is in the history.
  if (state.in_history > to.step && !turn.options.exact()) return false;
  const std::string why = "all workers that had applied step " + std::to_string(to.step) +
                          " are dead; it is computed again";
  turn.note(LogLine::Level::kWarn, "rolled_back",
            "the run goes back to step " + std::to_string(to.step) + ": " + why);
  cut_lineage(turn, to, "", why);
  for (MemberId id : state.ranks) {
    Member& member = turn.at(id);
    member.step = std::min(member.step, to.step);
  }
  return true;
}

void cut_lineage(Turn& turn, const ResumePoint& to, const std::string& checkpoint,
                 const std::string& why) {
  State& state = turn.state;
  turn.persist(RollbackEntry{to, checkpoint, why});
  std::vector<LedgerRow> rows;
  for (const auto& [generation, era] : state.lineage) rows.push_back(era.row);
  for (const LedgerRow& row : cut_ledger(rows, to)) state.lineage.at(row.generation).row = row;
  for (CheckpointEntry& entry : state.checkpoints) {
    if (entry.step <= to.step) continue;
    entry.state = CheckpointState::kRolledBack;
    state.stray.push_back(entry);
  }
  forget_checkpoints_after(state, to.step);
  state.evals.erase(state.evals.upper_bound(to.step), state.evals.end());
  state.pending.erase(state.pending.lower_bound(to.step), state.pending.end());
  state.early.erase(state.early.lower_bound(to.step), state.early.end());
  state.completed = std::min(state.completed, to.step);
}

}  // namespace lockstep::coordinator
