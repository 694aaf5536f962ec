// Keeps the journal of a long run small (PROTOCOL.md, Records, ledger, audit): once two checkpoints
// are complete, the records of the steps before the older one are compared with what the plan says,
// block by block, and a block that agrees is replaced by one hash (FoldEntry). The audit computes
// the same hash from the seed.
//
//   ledger ─▶ next block ─▶ its records, slot by slot against the plan ─▶ FoldEntry to commit
//
// INVARIANTS
//  F1 Only steps are folded that are complete, and before the older of two complete checkpoints of
//     the lineage: no resume and no take-over reads their records again. Nothing is folded while
//     members have disagreed and the lineage is not cut.
//  F2 A block of which any slot is not proven keeps all its records, for the audit to name it.
//  F3 A block lies in one generation, and its bounds follow from the ledger: a crash between two
//     commits, or a fold that is begun again, gives the same blocks.
//
// Thread-safety: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/audit/delivery.h"
#include "coordinator/audit/run_order.h"
#include "coordinator/journal/journal.h"
#include "coordinator/state/state.h"
#include "data/order/skip_set.h"

namespace lockstep::coordinator {

// Steps before it may be folded. Pure.
Step fold_bound(const State& state);

// How many steps a block has: fewer where there are many slots, so that no commit is a long one.
Step fold_block_steps(uint32_t slots);

class Folder {
 public:
  // `journal` outlives it.
  Folder(Journal& journal, RunOrder order) : journal_(journal), plan_(std::move(order)) {}

  struct Outcome {
    std::optional<FoldEntry> fold;    // to be committed before the next work()
    std::optional<std::string> kept;  // why a block keeps its records
  };
  // A bounded piece of work: about kSamples samples, whatever the size of a block.
  Result<Outcome> work(const State& state);

 private:
  struct Block {
    Generation generation = 0;
    Step first = 0;
    Step last = 0;
    // How far it is checked.
    Step step = 0;
    uint32_t slot = 0;
    FoldDigest digest;
    data::SkipSet skips;
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
  Step next_ = 0;   // what is before was looked at
  Step bound_ = 0;  // for which no further block was found
};

}  // namespace lockstep::coordinator
