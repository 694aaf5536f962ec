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

#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

struct CurveBin {
  Step first = 0;       // 0-based, of the bin
  uint64_t steps = 0;   // in the bin
  uint64_t finite = 0;  // steps whose loss is a number; the loss values are over these
  double loss_sum = 0;
  double loss_min = 0;
  double loss_max = 0;
  double lr = 0;  // of its last step
  uint64_t samples = 0;
  uint64_t wall_us = 0;
};

class Curves {
 public:
  static constexpr size_t kBins = 2'048;

  // REQUIRES: steps come in ascending order.
  void add(const StepEntry& step);

  const std::vector<CurveBin>& bins() const { return bins_; }
  uint64_t width() const { return width_; }

  // At most `points` bins, and at least one. Their width is a multiple of width(). O(kBins).
  std::vector<CurveBin> thinned(size_t points) const;

 private:
  uint64_t width_ = 1;
  std::vector<CurveBin> bins_;
};

}  // namespace lockstep::coordinator
