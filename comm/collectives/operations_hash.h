// A hash of all operations that a rank's device has enqueued in a step, in their order. Ranks
// compare it instead of every single tag (C4). The rank puts the hash into the tag of the operation
// that reduces the control section of the step, after the device's sums are there. Ranks whose
// hashes differ get an error there, and nothing of the step is applied.
//
// One comparison a step suffices: no rank uses a device's sum before the control section of its
// step is reduced, and every rank reduces it, even one without slots. Ranks that disagree about
// sizes may block on the device before they come to it. Then the hang timeout closes the
// generation.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>

#include "comm/base/prng.h"
#include "comm/collectives/collective.h"

namespace lockstep {

class OperationsHash {
 public:
  // `merge_hash`: hash_of(StepMerge).
  void begin_step(uint64_t merge_hash) { hash_ = merge_hash; }

  void add(const Tag& tag, const ElementRange& range) {
    hash_ = stream_key({hash_, tag.generation, tag.step, static_cast<uint64_t>(tag.phase),
                        tag.bucket, tag.bytes, range.begin, range.end});
  }

  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0;
};

}  // namespace lockstep
