#include "coordinator/ledger.h"

namespace lockstep::coordinator {

bool LedgerRow::covers(Step step) const {
  return !rolled_back && step >= first.step && (!last || step < last->step);
}

std::vector<LedgerRow> cut_ledger(const std::vector<LedgerRow>& rows, const ResumePoint& to) {
  std::vector<LedgerRow> changed;
  for (const LedgerRow& row : rows) {
    LedgerRow cut = row;
    // A row that begins at the cut itself has contributed no step before it.
    if (row.first.step >= to.step) {
      cut.rolled_back = true;
      cut.last = cut.first;
    } else if (!row.last || row.last->step > to.step) {
      cut.last = ResumePoint{to.step, Phase::kTrain};
    }
    if (!(cut == row)) changed.push_back(cut);
  }
  return changed;
}

bool lineage_contains(const std::vector<LedgerRow>& rows, Generation generation, Step steps) {
  for (const LedgerRow& row : rows) {
    if (row.generation != generation || row.rolled_back) continue;
    // The state a generation started from is the work of the one before, but its writer may have
    // written it once more.
    if (steps >= row.first.step && (!row.last || steps <= row.last->step)) return true;
  }
  return false;
}

}  // namespace lockstep::coordinator
