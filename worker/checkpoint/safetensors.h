// The safetensors format (https://github.com/huggingface/safetensors, README "Format"), written and
// read so that Python's package and we understand each other's files:
//
//   file   := le64(H) header data           H = bytes of header, at most kSafetensorsHeaderBytes
//   header := JSON object, starting with '{', padded with spaces so that 8 + H is a multiple of 8
//             name -> {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
//             "__metadata__" -> {string: string}, optional
//   data   := the tensors' bytes, row-major, little-endian, back to back; offsets count from here
//
// Names are sorted in the header. The bytes lie by (element size descending, name), as the
// reference implementation does it: back to back and yet every tensor aligned to its elements.
//
// INVARIANTS of a parsed header, whatever the bytes were
//  S1 Tensors cover [0, data bytes) exactly, without overlap or hole, and the file ends there.
//  S2 end - begin == product(shape) * dtype_bytes(dtype), computed without overflow.
//  S3 Names are unique and not empty; at most kTensors tensors of at most kTensorDims dimensions.
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
#include "worker/checkpoint/state_tensor.h"

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

// Bytes of the length field.
inline constexpr uint64_t kSafetensorsPrefixBytes = 8;

// H from the first 8 bytes of a file of `file_bytes`; checks it against both limits.
Result<uint64_t> parse_safetensors_prefix(std::string_view prefix, uint64_t file_bytes);

// `header`: the H bytes after the prefix. `file_bytes`: of the whole file.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view header, uint64_t file_bytes);

// What to write: `prefix` (length and JSON), then the bytes of `order`, each in full.
struct SafetensorsPlan {
  std::string prefix;
  std::vector<const StateTensor*> order;  // into the span given
  uint64_t file_bytes = 0;
};

// kUsage when a name is empty or occurs twice, when bytes and shape disagree, or over the limits.
Result<SafetensorsPlan> plan_safetensors(std::span<const StateTensor> tensors,
                                         const std::map<std::string, std::string>& metadata);

// product(shape) * dtype_bytes(dtype), or nothing on a negative dimension or overflow.
std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape);

// The dtype with this safetensors name, or nothing.
std::optional<DType> dtype_from_name(std::string_view name);

// "[2, 3]" for messages.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace lockstep
