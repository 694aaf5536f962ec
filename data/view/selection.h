// Which samples of a data set are held out, and which of the others are trained on: arithmetic in
// O(1) memory, whatever the number of samples.
//
// The samples are cut into stripes of kStripeSamples. In each, a keyed permutation
// (data/order/feistel.h) puts them in order; the first of that order are held out, the next are
// kept, the rest is not used. How many of each is what is due up to the end of the stripe, rounded
// down, less what the stripes before it had: so the counts are exact over the whole, every part of
// the data is in every selection by its share (also where they are sorted by label), and neighbours
// in a selection lie near each other in the files.
//
// INVARIANTS
//  V1 No sample is in both parts, and none is twice in one.
//  V2 size(kHeldOut) = floor(samples * held_out); size(kKept) = floor((samples - held out) * kept).
//     Shares count in billionths.
//  V3 A function of (samples, shares, key, kSelectionVersion) only. What is held out does not
//     depend on the share that is kept.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>

namespace lockstep::data {

inline constexpr uint64_t kSelectionVersion = 1;

enum class Part { kHeldOut, kKept };

class Selection {
 public:
  static constexpr uint64_t kStripeSamples = 4096;

  // Shares of one, from 0 to 1. REQUIRES: 0 < samples <= 2^62.
  Selection(uint64_t samples, double held_out, double kept, uint64_t key);

  uint64_t size(Part part) const { return up_to(part, samples_); }
  // The sample at place i of the part. REQUIRES: i < size(part).
  uint64_t at(Part part, uint64_t i) const;

 private:
  uint64_t up_to(Part part, uint64_t end) const;
  uint64_t shortest_with(Part part, uint64_t count) const;

  uint64_t samples_;
  uint64_t held_out_;  // billionths
  uint64_t kept_;      // billionths, of what is not held out
  uint64_t key_;
};

}  // namespace lockstep::data
