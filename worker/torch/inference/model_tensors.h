// The tensors of a model with trained weights, in memory of their own.
//
// Thread-safety: a free function.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/model/spec.h"

namespace lockstep {

struct ModelTensors {  // by index of the layout
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  std::vector<int64_t> counters;
};

// `path`: safetensors of a checkpoint, or of `lockstep export model`. Errors of load_own_weights().
Result<ModelTensors> load_model_tensors(const std::string& path, const wire::ModelSpec& model,
                                        const ModelLayout& layout);

}  // namespace lockstep
