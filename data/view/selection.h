// Selects the samples of a data set that are held out, and the samples of the rest that are trained
// on: arithmetic in O(1) memory, for any number of samples.
//
// The samples are cut into stripes of kStripeSamples. In each stripe a keyed permutation
// (comm/run/plan/feistel.h) orders the samples. The first of this order are held out, the next are
// kept, and the rest is not used.
//
// How many of each a stripe takes: the count due up to the end of the stripe, rounded down, minus
// the counts of the stripes before. This has three effects:
// - The counts are exact over the whole.
// - Every part of the data is in every selection by its share, even in data sorted by label.
// - Neighbours in a selection lie near each other in the files.
//
// INVARIANTS
//  V1 No sample is in both parts, and none is twice in one.
//  V2 size(kHeldOut) = floor(samples * held_out); size(kKept) = floor((samples - held out) * kept).
//     Shares count in billionths.
//  V3 A function of (samples, shares, key, kSelectionVersion) only. The kept share does not
//     influence what is held out.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>

namespace lockstep::data {

inline constexpr uint64_t kSelectionVersion = 1;

enum class SelectionPart { kHeldOut, kKept };

class Selection {
 public:
  static constexpr uint64_t kStripeSamples = 4096;

  // Shares of one, from 0 to 1. REQUIRES: 0 < samples <= 2^62.
  Selection(uint64_t samples, double held_out, double kept, uint64_t key);

  uint64_t size(SelectionPart part) const { return up_to(part, samples_); }
  // The sample at place i of the part. REQUIRES: i < size(part).
  uint64_t at(SelectionPart part, uint64_t i) const;

 private:
  uint64_t up_to(SelectionPart part, uint64_t end) const;
  uint64_t shortest_with(SelectionPart part, uint64_t count) const;

  uint64_t samples_;
  uint64_t held_out_;  // billionths
  uint64_t kept_;      // billionths, of the rest without what is held out
  uint64_t key_;
};

}  // namespace lockstep::data
