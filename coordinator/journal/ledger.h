// The durable rows from which the audit rebuilds the history of every sample: which generation,
// with which slot map, carried the lineage from where to where.
//
// INVARIANTS
//  L1 Rows of the surviving lineage follow each other: first of a row == last of the one before.
//  L2 At most one row is open, and it is the newest.
//  L3 A cut only shortens. Rolled back steps never come back.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/base/ids.h"

namespace lockstep::coordinator {

struct LedgerRow {
  Generation generation = 0;
  ResumePoint first;
  std::optional<ResumePoint> last;  // none while the generation runs
  bool rolled_back = false;         // nothing of it survives
  std::string reason;               // why the generation started

  bool operator==(const LedgerRow&) const = default;
  // Whether step `step` (0-based) of this row's generation is in the surviving lineage.
  bool covers(Step step) const;
};

// The row of the surviving lineage that did step `step`; null if none did.
const LedgerRow* row_of(const std::vector<LedgerRow>& rows, Step step);

// The rows that a cut of the lineage at `to` changes, with their new content.
std::vector<LedgerRow> cut_ledger(const std::vector<LedgerRow>& rows, const ResumePoint& to);

// Whether `generation` produced the state after `steps` applied steps in the surviving lineage.
bool lineage_contains(const std::vector<LedgerRow>& rows, Generation generation, Step steps);

}  // namespace lockstep::coordinator
