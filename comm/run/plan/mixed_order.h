// The order of one epoch of a mixture: which data set each unit is from (mixture.h), and which
// sample of the pass over this data set (pass_order.h). A pass has the order that a run on this
// data set alone has in the epoch of the same number.
//
// Samples are numbered part after part: the first part from 0, the second part after the first.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/run/plan/mixture.h"
#include "comm/run/plan/pass_order.h"

namespace lockstep {

class MixedOrder {
 public:
  // REQUIRES: check_mixture(parts).
  MixedOrder(uint64_t seed, const BlockShuffle& blocks, std::span<const MixedPart> parts,
             Epoch epoch);

  // REQUIRES for both: position < units of the epoch.
  Mixture::Unit unit_at(uint64_t position) const { return mixture_.at(epoch_, position); }
  uint64_t at(uint64_t position) const;

 private:
  struct Part {
    PassSpec spec;
    uint64_t first_sample = 0;
    uint64_t first_pass = 0;
    std::vector<PassOrder> passes;  // from first_pass on; a small set may have several an epoch
  };

  Epoch epoch_;
  Mixture mixture_;
  std::vector<Part> parts_;
};

}  // namespace lockstep
