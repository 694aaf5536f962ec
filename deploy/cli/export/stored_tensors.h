// Tensors of a file of weights, to be written again.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/safetensors_header.h"
#include "comm/run/checkpoint/state_tensor.h"
#include "worker/model/weights/weight_files.h"

namespace lockstep {

// The same tensor, whose content lies in the file's mapping and is only read. kBadData for a type
// that no checkpoint has.
Result<StateTensor> state_tensor_of(const FileTensor& tensor);

// A safetensors file in memory. Errors of plan_safetensors().
Result<std::string> safetensors_text(std::span<const StateTensor> tensors,
                                     const std::map<std::string, std::string>& metadata);

// A tensor of a type that no checkpoint has.
struct NamedContent {
  std::string name;
  const safetensors::Type* type = nullptr;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // of all elements
};
// The same file of any tensors, the widest elements first, so that all lie aligned. kUsage for a
// header over the limit. REQUIRES: names differ.
Result<std::string> safetensors_text_of(std::vector<NamedContent> tensors,
                                        const std::map<std::string, std::string>& metadata);

}  // namespace lockstep
