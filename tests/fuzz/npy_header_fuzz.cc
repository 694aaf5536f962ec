// Any bytes as a NumPy array file: refused, or a header whose numbers agree and whose elements can
// be read if the file is as long as it says.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "data/formats/arrays/field_values.h"
#include "data/formats/arrays/npy_dataset.h"
#include "data/formats/arrays/npy_header.h"

namespace lockstep::data {
namespace {

// Reads the samples as samples of a field: copied within their bounds, or refused.
void try_field(const NpyHeader& header, std::span<const uint8_t> file) {
  if (header.dims.empty() || header.content_bytes == 0) return;
  if (!check_npy_size(header, file.size()).is_ok()) return;
  const FieldValues values{.name = "x.npy",
                           .kind = header.kind,
                           .element_bytes = header.element_bytes,
                           .dims = {header.dims.begin() + 1, header.dims.end()},
                           .first = file.data() + header.header_bytes,
                           .stride_bytes = header.content_bytes / header.dims[0]};
  if (!check_field_kind(values).is_ok()) return;
  FieldSpec spec{.name = "x", .type = values.is_float() ? FieldType::kF32 : FieldType::kI64};
  for (const uint64_t dim : values.dims) spec.dims.push_back(static_cast<uint32_t>(dim));
  std::vector<std::byte> record(spec.bytes());
  for (uint64_t i = 0; i < header.dims[0]; ++i) {
    const Status copied = copy_field(values, spec, i, record.data());
    LOCKSTEP_CHECK(copied.is_ok() || copied.code() == Code::kBadData, "damage is bad data");
  }
}

void try_file(std::span<const uint8_t> file) {
  const auto header = parse_npy_header(file);
  if (!header.is_ok()) {
    LOCKSTEP_CHECK(header.status().code() == Code::kBadData, "damage is bad data");
    return;
  }
  LOCKSTEP_CHECK(
      header->header_bytes <= file.size() && header->header_bytes <= limits::kNpyHeaderBytes,
      "a header lies within its file");
  LOCKSTEP_CHECK(header->content_bytes <= limits::kDatasetBytes, "content has a limit");
  for (const char* format : {"npy", "npy_nchw", "npy_nhwc"}) {
    const auto shape = npy_image_shape(*header, format);
    if (!shape.is_ok()) continue;
    LOCKSTEP_CHECK(shape->elements() > 0 && shape->elements() <= limits::kSampleBytes,
                   "a sample has a size within the limit");
    LOCKSTEP_CHECK(shape->elements() * header->dims[0] == header->content_bytes,
                   "samples fill the content");
  }
  try_field(*header, file);
  if (!header->is_integer() || !check_npy_size(*header, file.size()).is_ok()) return;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < header->content_bytes / header->element_bytes; ++i)
    sum += static_cast<uint64_t>(npy_integer(*header, file.data() + header->header_bytes, i));
  (void)sum;
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::data::try_file({data, size});
  // Tries the bytes also as the text of a header, because the fuzzer would need long to find one.
  std::vector<uint8_t> file = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  const size_t text_bytes = std::min<size_t>(size, 5'000);
  file.push_back(static_cast<uint8_t>(text_bytes));
  file.push_back(static_cast<uint8_t>(text_bytes >> 8));
  file.insert(file.end(), data, data + size);
  lockstep::data::try_file(file);
  return 0;
}
