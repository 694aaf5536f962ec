// Keeps the journal of a long run small (PROTOCOL.md, "Records, ledger, audit"). Once two
// checkpoints are complete, it compares the records of the steps before the older one with the
// plan, block by block. One hash (FoldEntry) replaces a block that agrees. The audit computes the
// same hash from the seed.
//
//   ledger ─▶ next block ─▶ its records, slot by slot against the plan ─▶ FoldEntry to commit
//
// INVARIANTS
//  F1 It folds only complete steps before the older of two complete checkpoints of the lineage. No
//     resume and no take-over reads their records again. It folds nothing between a disagreement of
//     the members and the cut of the lineage.
//  F2 A block with an unproven slot keeps all its records, so that the audit can name the slot.
//  F3 A block lies in one generation, and its bounds follow from the ledger. So a crash between two
//     commits, or a second attempt at a fold, gives the same blocks.
//
// Thread-safety: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/run/plan/fold_digest.h"
#include "comm/run/plan/skip_set.h"
#include "coordinator/audit/delivery.h"
#include "coordinator/audit/run_order.h"
#include "coordinator/journal/journal.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// The first step that must not be folded. Pure.
Step fold_bound(const State& state);

class Folder {
 public:
  // `journal` outlives it.
  Folder(Journal& journal, RunOrder order) : journal_(journal), plan_(std::move(order)) {}

  struct Outcome {
    std::optional<FoldEntry> fold;    // the caller commits it before the next work()
    std::optional<std::string> kept;  // why a block keeps its records
  };
  // Does a bounded piece of work: about kSamples samples, whatever the size of a block.
  Result<Outcome> work(const State& state);

 private:
  struct Block {
    Generation generation = 0;
    Step first = 0;
    Step last = 0;
    // How far the check is.
    Step step = 0;
    uint32_t slot = 0;
    FoldDigest digest;
    SkipSet skips;
    RecordedSteps recorded;  // of steps up to `read`
    Step read = 0;
  };

  Status find_block(const State& state, Step bound);
  bool is_folded(Generation generation, Step first, Step last) const;
  Status read_records(int64_t* budget);
  std::optional<std::string> check_step(int64_t* budget);

  Journal& journal_;
  OrderedPlan plan_;
  bool has_folds_ = false;
  std::vector<FoldEntry> folds_;
  std::optional<Block> block_;
  Step next_ = 0;   // earlier steps were looked at
  Step bound_ = 0;  // the bound for which there was no further block
};

}  // namespace lockstep::coordinator
