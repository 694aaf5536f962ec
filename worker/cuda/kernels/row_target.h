// The target of a row of logits. The target is one label, or two labels in shares if samples are
// mixed. With label smoothing every class has a small part of the target. The loss is the
// cross-entropy with the target as the distribution: PyTorch's cross-entropy with label_smoothing,
// and for two labels the sum by their shares.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "comm/base/mixing.h"
#include "worker/cuda/kernels/slot_values.h"

namespace lockstep {

struct RowTarget {
  int64_t label = 0;
  int64_t other = 0;    // label of the sample mixed in; unused if share is 1
  float share = 1;      // of `label`; the rest belongs to `other`
  float smoothing = 0;  // part of the target that all classes share equally

  // The label that a prediction must match: the one with the larger share, or the sample's own if
  // the shares are equal.
  LOCKSTEP_HOST_DEVICE int64_t likelier() const { return share < 0.5f ? other : label; }
  LOCKSTEP_HOST_DEVICE float label_weight() const { return (1.0f - smoothing) * share; }
  LOCKSTEP_HOST_DEVICE float other_weight() const { return (1.0f - smoothing) * (1.0f - share); }
};

// The target of row i in a slot of `rows` rows.
LOCKSTEP_HOST_DEVICE RowTarget target_of(const int64_t* labels, uint64_t i, uint64_t rows,
                                         const SlotValues& values) {
  return {labels[i], labels[mixed_with(i, rows)], values.label_share, values.label_smoothing};
}

}  // namespace lockstep
