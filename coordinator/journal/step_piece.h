// Summaries of closed pieces of a run. A piece is kPieceSteps steps of the surviving lineage whose
// rows do not change any more, unless the lineage is cut before its end: then the piece goes, too.
// A new term reads the summaries, and the rows of the newest steps only.
//
//   steps   0 ─────── 10,000 ─────── 20,000 ────── 23,417
//           └ piece ──┘└── piece ────┘└── open part ───┘
//
// INVARIANTS
//  P1 Pieces follow each other from step 0 on, without a gap.
//  P2 The bins of a piece are as wide as the bins of the curves of a run of `last` steps, so that
//     curves from pieces have the same bins as curves from rows.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

inline constexpr Step kPieceSteps = 10'000;
inline constexpr size_t kCurveBins = 2'048;

// A stretch of steps in a plot. The values of the loss are over steps whose loss is a number.
struct CurveBin {
  Step first = 0;       // 0-based
  uint64_t steps = 0;   // in the bin
  uint64_t finite = 0;  // steps whose loss is a number
  double loss_sum = 0;
  double loss_min = 0;
  double loss_max = 0;
  double lr = 0;  // of its last step
  uint64_t samples = 0;
  uint64_t wall_us = 0;
  bool operator==(const CurveBin&) const = default;
};

CurveBin bin_of(const StepEntry& step);

// How wide the bins of the curves of a run of `steps` steps are: a power of two.
uint64_t curve_width(Step steps);

// `bin` joins the last one if both lie in the same stretch of `width` steps.
void put_bin(const CurveBin& bin, uint64_t width, std::vector<CurveBin>* bins);

struct StepTally {
  uint64_t samples = 0;
  uint64_t correct = 0;
  uint64_t wall_us = 0;

  void add(const StepEntry& step);
  double rate() const {  // samples/s
    return wall_us == 0 ? 0 : static_cast<double>(samples) * 1e6 / static_cast<double>(wall_us);
  }
  bool operator==(const StepTally&) const = default;
};

// Over all steps of a run so far. The steady state leaves out the first steps of each generation,
// when allocators, caches and the prefetcher are cold.
struct StepTotals {
  static constexpr uint32_t kWarmUpSteps = 10;
  static constexpr uint64_t kStandstillTimes = 4;       // longer than usual,
  static constexpr uint64_t kStandstillUs = 1'000'000;  // and by so much

  StepTally all;
  StepTally steady;
  Generation generation = 0;          // of the last step
  uint32_t cold_left = kWarmUpSteps;  // steps of it that are still to come and do not count
  // The time of all steps. A step that took much longer than usual counts as long as usual, because
  // its processes stood still meanwhile.
  uint64_t useful_us = 0;
  uint64_t usual_us = 0;  // the usual time of a step lately

  void add(const StepEntry& step);
  bool operator==(const StepTotals&) const = default;

 private:
  uint64_t useful(uint64_t wall_us) const;
};

struct StepPiece {
  Step first = 0;
  Step last = 0;            // exclusive
  uint64_t content = 0;     // the sum of the hashes of its rows (journal_chain.h)
  StepTotals totals;        // of steps [0, last)
  uint64_t text_bytes = 0;  // its lines in history.jsonl
  uint64_t text_hash = 0;   // XXH3 of them
  std::vector<CurveBin> bins;
};

// The pieces that end at `end` or before.
std::vector<StepPiece> pieces_before(std::vector<StepPiece> pieces, Step end);

// The same without the newest: a reader that visits the steps from the end of these on has seen all
// steps that a window over the newest ones wants.
std::vector<StepPiece> pieces_well_before(std::vector<StepPiece> pieces, Step end);

inline Step end_of(const std::vector<StepPiece>& pieces) {
  return pieces.empty() ? 0 : pieces.back().last;
}

}  // namespace lockstep::coordinator
