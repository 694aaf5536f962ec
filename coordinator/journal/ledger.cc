#include "coordinator/journal/ledger.h"

#include <algorithm>

namespace lockstep::coordinator {

bool LedgerRow::covers(Step step) const {
  return !rolled_back && step >= first.step && (!last || step < last->step);
}

const LedgerRow* row_of(const std::vector<LedgerRow>& rows, Step step) {
  const auto it = std::find_if(rows.begin(), rows.end(),
                               [step](const LedgerRow& row) { return row.covers(step); });
  return it == rows.end() ? nullptr : &*it;
}

std::vector<LedgerRow> cut_ledger(const std::vector<LedgerRow>& rows, const ResumePoint& to) {
  std::vector<LedgerRow> changed;
  for (const LedgerRow& row : rows) {
    const bool ends_in_time = row.last && row.last->step <= to.step;
    if (ends_in_time || row.rolled_back) continue;
    LedgerRow cut = row;
    // A row that begins at the cut itself has contributed no step before it.
    if (row.first.step >= to.step) {
      cut.rolled_back = true;
      cut.last = cut.first;
    } else {
      cut.last = to;
    }
    changed.push_back(cut);
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
