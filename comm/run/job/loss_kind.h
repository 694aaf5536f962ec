// The loss of a job (train.loss), and what it needs of model and data.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "comm/run/job/job.pb.h"

namespace lockstep {

enum class LossKind : uint8_t {
  kCrossEntropy,  // a logit for each class, unless the model has a loss of its own
  kBce,           // one logit against a label of 0 or 1
  kMse,           // one output against the label as a number; the others, too
  kL1,
  kHuber,
};

// REQUIRES: the name is one of the key's values, or empty.
inline LossKind loss_kind(const wire::TrainSpec& train) {
  if (train.loss() == "bce") return LossKind::kBce;
  if (train.loss() == "mse") return LossKind::kMse;
  if (train.loss() == "l1") return LossKind::kL1;
  return train.loss() == "huber" ? LossKind::kHuber : LossKind::kCrossEntropy;
}

}  // namespace lockstep
