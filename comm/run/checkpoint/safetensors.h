// Checkpoints as safetensors files (comm/run/checkpoint/safetensors_header.h) that Python's package
// reads, and the other way round.
//
// Names are sorted in the header. Tensors lie by (element size descending, name), as in the
// reference implementation. So they lie back to back, and each is aligned to its elements.
//
// Errors: kBadData for anything that breaks the format, with the name of the tensor.
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/safetensors_header.h"
#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes from the start of the data
  uint64_t end = 0;
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  // ascending by begin: the order to read the file in
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  // offset of the data in the file
  uint64_t data_bytes = 0;
};

// Like safetensors::parse_header(), but only for tensors that a state can have.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view header, uint64_t file_bytes);

// The bytes to write: `prefix` (length and JSON), then the bytes of the tensors in `order`.
struct SafetensorsPlan {
  std::string prefix;
  std::vector<const StateTensor*> order;  // into the span given
  uint64_t file_bytes = 0;
};

// kUsage if a name is empty or occurs twice, if bytes and shape disagree, or over the limits.
Result<SafetensorsPlan> plan_safetensors(std::span<const StateTensor> tensors,
                                         const std::map<std::string, std::string>& metadata);

// product(shape) * dtype_bytes(dtype). Nothing for a negative dimension or on overflow.
std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape);

}  // namespace lockstep
