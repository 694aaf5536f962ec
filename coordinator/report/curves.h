// Loss, learning rate and speed over the whole run in bounded memory, for plots. Bins of equal
// width hold the steps. When there are too many bins, each two become one.
//
// INVARIANTS
//  U1 There are at most kBins bins, ascending, none empty, and all but the last complete.
//  U2 A bin [first, first + width) begins at a multiple of the width.
//
// Thread-safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coordinator/journal/step_piece.h"

namespace lockstep::coordinator {

class Curves {
 public:
  static constexpr size_t kBins = kCurveBins;

  // REQUIRES: steps come in ascending order.
  void add(const StepEntry& step);
  // All of its steps at once.
  void add(const StepPiece& piece);

  const std::vector<CurveBin>& bins() const { return bins_; }
  uint64_t width() const { return width_; }

  // At most `points` bins, and at least one. Their width is a multiple of width(). O(kBins).
  std::vector<CurveBin> thinned(size_t points) const;

 private:
  void widen(uint64_t width);

  uint64_t width_ = 1;
  std::vector<CurveBin> bins_;
};

}  // namespace lockstep::coordinator
