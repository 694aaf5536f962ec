// How many predictions a model makes of one sample: one of an image, one at every token of a
// sequence. Where samples are counted and right predictions too, this is what lies between them.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

#include "comm/wire/job.pb.h"

namespace lockstep {

// REQUIRES: the job is resolved.
inline uint64_t predictions_per_sample(const wire::ModelSpec& model) {
  return model.name() == "gpt2" ? model.block() : 1;
}

}  // namespace lockstep
