// What a row of logits is to predict: one label, or two in shares where samples are mixed, and with
// label smoothing a little of every class. The loss is cross-entropy with that as the distribution,
// PyTorch's of label_smoothing and of two labels by their shares.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "comm/base/mixing.h"
#include "worker/cuda/slot_values.h"

namespace lockstep {

struct RowTarget {
  int64_t label = 0;
  int64_t other = 0;    // of the sample that it was mixed with; for nothing where share is 1
  float share = 1;      // of `label`, the rest is `other`'s
  float smoothing = 0;  // of all that: it belongs to every class alike

  // As the target of a prediction counts the larger share, and of two halves the sample's own.
  LOCKSTEP_HOST_DEVICE int64_t likelier() const { return share < 0.5f ? other : label; }
  LOCKSTEP_HOST_DEVICE float label_weight() const { return (1.0f - smoothing) * share; }
  LOCKSTEP_HOST_DEVICE float other_weight() const { return (1.0f - smoothing) * (1.0f - share); }
};

// Of row i of a slot of so many.
LOCKSTEP_HOST_DEVICE RowTarget target_of(const int64_t* labels, uint64_t i, uint64_t rows,
                                         const SlotValues& values) {
  return {labels[i], labels[mixed_with(i, rows)], values.label_share, values.label_smoothing};
}

}  // namespace lockstep
