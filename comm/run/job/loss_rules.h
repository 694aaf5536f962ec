// The rules of losses: which keys of a job a loss goes with, and what it says of predictions.
// `is_own`: the model gives its own loss.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/job/loss_kind.h"

namespace lockstep {

// The loss tells right predictions from wrong ones.
inline bool knows_right(LossKind kind, bool is_own) {
  return !is_own && loss_row(kind).knows_right;
}

// The mean loss is over samples, and not over labels.
inline bool is_by_sample(LossKind kind, bool is_own) {
  return is_own || loss_row(kind).is_by_sample;
}

// A key of a job that asks its loss for something that the loss does not have.
struct LossConflict {
  std::string key;     // "data.transforms"
  std::string shown;   // "the transform mixup=0.4"
  std::string why;     // "only the labels of cross_entropy can be mixed"
  std::string advice;  // "leave it out"
};

// The first one; none if the job is fine.
std::optional<LossConflict> loss_conflict(const wire::JobSpec& job, bool is_own);

// kUsage, for a key that does not go with a model's own loss.
Status refused_beside_own_loss(const LossConflict& conflict);

}  // namespace lockstep
