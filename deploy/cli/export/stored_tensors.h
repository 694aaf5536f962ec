// Tensors of a file of weights, to be written again.
//
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "coordinator/checkpoint/state_tensor.h"
#include "worker/model/weights/weight_files.h"

namespace lockstep {

// The same tensor, whose content lies in the file's mapping and is only read. kBadData for a type
// that no checkpoint has.
Result<StateTensor> state_tensor_of(const FileTensor& tensor);

// A safetensors file in memory. Errors of plan_safetensors().
Result<std::string> safetensors_text(std::span<const StateTensor> tensors,
                                     const std::map<std::string, std::string>& metadata);

}  // namespace lockstep
