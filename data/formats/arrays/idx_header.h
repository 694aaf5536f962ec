// The header of an IDX file: two zero bytes, a type, a number of dimensions, then each dimension as
// a big-endian 32-bit number. The content follows, row-major, big-endian.
//
// Bytes come from outside: they never decide how much memory the parser allocates, and the parser
// checks every product. All errors are kBadData, one clause; the caller puts the file's name before
// it.
//
// Source: Y. LeCun, C. Cortes, C. Burges: The MNIST database, "the IDX file format".
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::data {

enum class IdxType : uint8_t {
  kU8 = 0x08,
  kI8 = 0x09,
  kI16 = 0x0b,
  kI32 = 0x0c,
  kF32 = 0x0d,
  kF64 = 0x0e,
};

struct IdxHeader {
  IdxType type = IdxType::kU8;
  std::vector<uint32_t> dims;  // 1 to 8; dims[0] counts the records
  uint64_t header_bytes = 0;   // where the content begins
  uint64_t element_bytes = 0;  // 1, 2, 4 or 8
  uint64_t content_bytes = 0;  // product of dims times element_bytes, <= limits::kDatasetBytes
  uint64_t file_bytes() const { return header_bytes + content_bytes; }
};

// `head`: the first limits::kIdxHeaderBytes of the file, or all of a shorter one.
Result<IdxHeader> parse_idx_header(std::span<const uint8_t> head);

// True for (N, H, W) or (N, C, H, W) of uint8.
bool is_image_header(const IdxHeader& header);
// True for (N) of uint8, int16 or int32.
bool is_label_header(const IdxHeader& header);

// Shape of one sample. Refuses a file that holds no images, no sample, or samples beyond
// limits::kSampleBytes.
Result<SampleShape> image_shape(const IdxHeader& header);

// Refuses a file that is no label file, or holds no label.
Status check_label_header(const IdxHeader& header);

// The i-th label as stored. REQUIRES: is_label_header(); `content` is as long as the header says.
int64_t label_at(const IdxHeader& header, const uint8_t* content, uint64_t i);

}  // namespace lockstep::data
