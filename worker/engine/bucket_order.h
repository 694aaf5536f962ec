// The order in which the buckets of a step leave. It is the same on every rank.
//
// The order in which a model registers its layers does not tell when their gradients come. A bucket
// that waits for a late gradient does not overlap with backward. So rank 0 notes the order in which
// backward completes its buckets, and tells the other ranks. Backward takes the same order in every
// step. The order changes no sum (collective.h, C1).
//
//   ascending ── after the last bucket of a step that rank 0 has computed ──▶ as rank 0 noted it
//
// INVARIANTS
//  B1 at() is a permutation of all buckets. The last bucket, which holds votes, comes last.
//  B2 The order changes only after a step's last bucket, and then on all ranks. At this point no
//     rank waits for another rank's forward, so coordinator/decide/hang.cc still finds a rank that
//     hangs in a forward.
//
// Thread-safety: one thread changes the order, while no other thread reads it.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep {

class BucketOrder {
 public:
  explicit BucketOrder(uint32_t buckets);

  // The bucket at this place in the order.
  uint32_t at(uint32_t position) const { return order_[position]; }

  // This rank's last slot has completed the bucket.
  void completed(uint32_t bucket);

  // Agrees on the order. Every rank calls agree() after the last bucket of every step. Rank 0
  // broadcasts in a generation's first step, and again in later steps until it has had samples.
  // With one rank or one possible order agree() does nothing.
  // Errors: from the collective; kInternal if rank 0 sends something that is not an order.
  Status agree(Collective& collective, Generation generation, Step step);

 private:
  std::vector<uint32_t> order_;
  std::vector<uint32_t> noted_;  // of the step in progress
  bool agreed_;
};

}  // namespace lockstep
