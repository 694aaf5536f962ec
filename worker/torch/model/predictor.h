// Gives logits for inputs alone, with the trained parameters of a model whose forward gives losses.
//
// Thread-safety: as Model::forward().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

struct ModelInputs;

class Predictor {
 public:
  virtual ~Predictor() = default;

  // The fewest samples that a batch may have.
  virtual uint64_t fewest() const = 0;
  // As Model::check_batch().
  virtual Status check_batch(uint64_t samples, const std::string& whose) const = 0;

  // (B, ...) floats. Arguments as of Model::forward(); labels are not read. `counters`: as
  // ForwardMode::counters.
  virtual at::Tensor logits(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                            std::span<const at::Tensor> buffers,
                            std::span<const int64_t> counters) const = 0;
};

}  // namespace lockstep
