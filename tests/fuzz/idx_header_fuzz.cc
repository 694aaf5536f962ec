// Any bytes as an IDX file: refused, or a header whose numbers agree and whose labels can be read
// if the file is long enough.
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "data/formats/arrays/idx_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::data;
  const auto header = parse_idx_header(std::span(data, size));
  if (!header.is_ok()) {
    LOCKSTEP_CHECK(header.status().code() == Code::kBadData, "damage is bad data");
    return 0;
  }
  LOCKSTEP_CHECK(header->header_bytes <= size, "a header lies within its file");
  LOCKSTEP_CHECK(header->content_bytes <= limits::kDatasetBytes, "content has a limit");
  if (const auto shape = image_shape(*header); shape.is_ok()) {
    LOCKSTEP_CHECK(shape->elements() > 0 && shape->elements() <= limits::kSampleBytes,
                   "a sample has a size within the limit");
    LOCKSTEP_CHECK(shape->elements() * header->dims[0] == header->content_bytes,
                   "samples fill the content");
  }
  if (check_label_header(*header).is_ok() && header->file_bytes() <= size) {
    int64_t sum = 0;
    for (uint64_t i = 0; i < header->dims[0]; ++i)
      sum += label_at(*header, data + header->header_bytes, i);
    (void)sum;
  }
  return 0;
}
