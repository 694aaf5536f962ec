// The order in which the buckets of a step leave, the same on every rank.
//
// Where a model registers its layers is no promise of when their gradients come, and a bucket that
// waits for one that comes late is not overlapped. So rank 0 notes in which order backward
// completes its buckets, and tells the others; backward takes the same order in every step. The
// order changes no sum (collective.h, C1).
//
//   ascending ── behind the last bucket of a step that rank 0 has computed ──▶ as rank 0 noted it
//
// INVARIANTS
//  B1 at() is a permutation of all buckets, and the last bucket, which holds votes, comes last.
//  B2 The order changes behind a step's last bucket only, and then on all ranks alike. There nobody
//     waits for another's forward, so who hangs in one is found as ever (hang.h).
//
// Thread-safety: one thread changes it, and nobody reads it meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep {

class BucketOrder {
 public:
  explicit BucketOrder(uint32_t buckets);

  // The bucket that leaves in this place.
  uint32_t at(uint32_t position) const { return order_[position]; }

  // This rank's last slot has completed the bucket.
  void completed(uint32_t bucket);

  // Every rank, behind the last bucket of every step. A broadcast in a generation's first step, and
  // in later ones as long as rank 0 had no samples; nothing where there is but one rank, or one
  // order. Errors: the collective's; kInternal when what rank 0 sent is no order.
  Status agree(Collective& collective, Generation generation, Step step);

 private:
  std::vector<uint32_t> order_;
  std::vector<uint32_t> noted_;  // in the step in progress
  bool agreed_;
};

}  // namespace lockstep
