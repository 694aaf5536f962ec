// The number of predictions that a model makes of one sample: one of an image, one at every token
// of a sequence. It converts between counts of samples and counts of right predictions.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

#include "comm/wire/job.pb.h"

namespace lockstep {

// True if the model is the user's own file: model.path.
inline bool is_from_file(const wire::ModelSpec& model) {
  return model.name() == "torchscript" || model.name() == "plugin";
}

// REQUIRES: the job is resolved.
inline uint64_t predictions_per_sample(const wire::ModelSpec& model) {
  const bool may_take_tokens = model.name() == "gpt2" || is_from_file(model);
  return may_take_tokens && model.block() > 0 ? model.block() : 1;
}

}  // namespace lockstep
