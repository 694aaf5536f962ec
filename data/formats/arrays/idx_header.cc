#include "data/formats/arrays/idx_header.h"

#include <string>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::data {
namespace {

uint32_t big_endian32(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

// 0 for a type that IDX does not have.
uint64_t bytes_of_type(uint8_t type) {
  switch (type) {
    case 0x08:
    case 0x09:
      return 1;
    case 0x0b:
      return 2;
    case 0x0c:
    case 0x0d:
      return 4;
    case 0x0e:
      return 8;
    default:
      return 0;
  }
}

std::string magic_text(const uint8_t* p) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int i = 0; i < 4; ++i) {
    text += kDigits[p[i] >> 4];
    text += kDigits[p[i] & 15];
  }
  return text;
}

std::string dims_text(const IdxHeader& header) {
  std::string text;
  for (const uint32_t dim : header.dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

}  // namespace

Result<IdxHeader> parse_idx_header(std::span<const uint8_t> head) {
  if (head.size() < 4)
    return bad("is truncated: " + std::to_string(head.size()) + " bytes hold no IDX header");
  const uint64_t element_bytes = bytes_of_type(head[2]);
  const size_t dimensions = head[3];
  if (head[0] != 0 || head[1] != 0 || element_bytes == 0 || dimensions == 0)
    return bad("is not an IDX file: its magic number is " + magic_text(head.data()) +
               ", images have 0x00000803 and labels 0x00000801");
  const size_t header_bytes = 4 + 4 * dimensions;
  if (header_bytes > limits::kIdxHeaderBytes)
    return bad("is not an IDX file: it claims " + std::to_string(dimensions) + " dimensions");
  if (head.size() < header_bytes)
    return bad("is truncated: its header needs " + std::to_string(header_bytes) +
               " bytes and only " + std::to_string(head.size()) + " are there");

  IdxHeader header;
  header.type = static_cast<IdxType>(head[2]);
  header.header_bytes = header_bytes;
  header.element_bytes = element_bytes;
  for (size_t i = 0; i < dimensions; ++i)
    header.dims.push_back(big_endian32(head.data() + 4 + 4 * i));
  uint64_t bytes = element_bytes;
  for (const uint32_t dim : header.dims) {
    if (dim != 0 && bytes > limits::kDatasetBytes / dim)
      return bad("claims " + dims_text(header) + " elements, more than the limit of " +
                 std::to_string(limits::kDatasetBytes) + " bytes a file");
    bytes *= dim;
  }
  header.content_bytes = bytes;
  return header;
}

bool is_image_header(const IdxHeader& header) {
  return header.type == IdxType::kU8 && (header.dims.size() == 3 || header.dims.size() == 4);
}

bool is_label_header(const IdxHeader& header) {
  const bool integer =
      header.type == IdxType::kU8 || header.type == IdxType::kI16 || header.type == IdxType::kI32;
  return integer && header.dims.size() == 1;
}

Result<SampleShape> image_shape(const IdxHeader& header) {
  if (!is_image_header(header))
    return bad("holds no images: images are unsigned bytes of shape (N, H, W) or (N, C, H, W)");
  if (header.dims[0] == 0) return bad("holds no sample");
  SampleShape shape;
  const size_t rank = header.dims.size();
  shape.channels = rank == 4 ? header.dims[1] : 1;
  shape.height = header.dims[rank - 2];
  shape.width = header.dims[rank - 1];
  if (header.content_bytes == 0) return bad("holds images of size 0 (" + dims_text(header) + ")");
  if (header.content_bytes / header.dims[0] > limits::kSampleBytes)
    return bad("holds images of " + std::to_string(header.content_bytes / header.dims[0]) +
               " bytes, the limit is " + std::to_string(limits::kSampleBytes));
  return shape;
}

Status check_label_header(const IdxHeader& header) {
  if (!is_label_header(header))
    return bad("holds no labels: labels are bytes, or 16- or 32-bit integers, in one dimension");
  if (header.dims[0] == 0) return bad("holds no label");
  return Status::ok();
}

int64_t label_at(const IdxHeader& header, const uint8_t* content, uint64_t i) {
  const uint8_t* p = content + i * header.element_bytes;
  if (header.element_bytes == 1) return p[0];
  if (header.element_bytes == 2) return static_cast<int16_t>(uint16_t{p[0]} << 8 | p[1]);
  return static_cast<int32_t>(big_endian32(p));
}

}  // namespace lockstep::data
