// Checks a fold (journal_entry.h) against the plan: computes the hash of its records again from the
// seed.
//
// Thread-safety: a value; const methods from any thread.
#pragma once

#include <vector>

#include "comm/run/plan/skip_set.h"
#include "coordinator/audit/run_order.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

class CheckedFold {
 public:
  // Computes the whole fold, also if the ledger has cut its row inside it. `skips`: the slots that
  // its generation had to leave out.
  CheckedFold(const FoldEntry& entry, const SkipSet& skips, OrderedPlan& plan);

  bool holds(Generation generation, Step step) const {
    return fold_.generation == generation && fold_.first <= step && step < fold_.last;
  }
  bool is_right() const { return is_right_; }
  // The planned digest. REQUIRES: the fold holds the step; the slot has samples and is not left
  // out.
  uint64_t digest(Step step, uint32_t slot) const {
    return digests_[(step - fold_.first) * slots_ + slot];
  }

 private:
  FoldEntry fold_;
  uint32_t slots_;
  std::vector<uint64_t> digests_;  // by step and slot
  bool is_right_ = false;
};

}  // namespace lockstep::coordinator
