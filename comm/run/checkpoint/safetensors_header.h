// The header of a safetensors file (https://github.com/huggingface/safetensors, README "Format").
// Checkpoints and data sets use this parser:
//
//   file   := le64(H) header data           H = bytes of header, at most kSafetensorsHeaderBytes
//   header := JSON object, starting with '{', padded with spaces so that 8 + H is a multiple of 8
//             name -> {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
//             "__metadata__" -> {string: string}, optional
//   data   := the tensors' bytes, row-major, little-endian, back to back; offsets count from here
//
// INVARIANTS of a parsed header, whatever the bytes were
//  S1 Tensors cover [0, data bytes) exactly, without overlap or hole, and the file ends there.
//  S2 end - begin == product(shape) * bytes of the dtype, computed without overflow.
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

namespace lockstep::safetensors {

// The format's types with elements of whole bytes.
struct Type {
  const char* name;  // "F32"
  uint32_t bytes;
  char kind;  // 'u', 'i', 'f', 'c' or 'b': unsigned, signed, floating, complex, boolean
};

// The type of this name, or null.
const Type* type_of(std::string_view name);

struct Entry {
  std::string name;
  const Type* type = nullptr;  // never null in a parsed header
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes from the start of the data
  uint64_t end = 0;
};

struct Header {
  std::vector<Entry> tensors;  // ascending by begin: the order to read the file in
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  // offset of the data in the file
  uint64_t data_bytes = 0;
};

inline constexpr char kMetadataKey[] = "__metadata__";

// Bytes of the length field.
inline constexpr uint64_t kPrefixBytes = 8;

// Reads H from the first 8 bytes of a file of `file_bytes`, and checks H against both limits.
Result<uint64_t> parse_prefix(std::string_view prefix, uint64_t file_bytes);

// `header`: the H bytes after the prefix. `file_bytes`: size of the whole file.
Result<Header> parse_header(std::string_view header, uint64_t file_bytes);

// `file`: the whole file in memory.
Result<Header> parse_file(std::string_view file);

// product(shape) * element_bytes; empty for a negative dimension or an overflow.
std::optional<uint64_t> bytes_of(uint64_t element_bytes, std::span<const int64_t> shape);

// "[2, 3]" for messages.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace lockstep::safetensors
