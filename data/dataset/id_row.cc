#include "data/dataset/id_row.h"

#include <cstring>

#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

template <typename T>
bool copy_ids(const uint8_t* stored, uint64_t count, int64_t* out) {
  int64_t all = 0;
  for (uint64_t i = 0; i < count; ++i) {
    T id;
    std::memcpy(&id, stored + i * sizeof id, sizeof id);
    out[i] = static_cast<int64_t>(id);  // NOLINT(bugprone-signed-char-misuse): the sign counts
    all |= out[i];
  }
  return all >= 0;  // the sign of any
}

}  // namespace

bool read_id_row(const uint8_t* stored, const SampleShape& shape, int64_t* out) {
  const bool is_signed = shape.has_signed_ids;
  switch (shape.id_bytes) {
    case 1:
      return is_signed ? copy_ids<int8_t>(stored, shape.channels, out)
                       : copy_ids<uint8_t>(stored, shape.channels, out);
    case 2:
      return is_signed ? copy_ids<int16_t>(stored, shape.channels, out)
                       : copy_ids<uint16_t>(stored, shape.channels, out);
    case 4:
      return is_signed ? copy_ids<int32_t>(stored, shape.channels, out)
                       : copy_ids<uint32_t>(stored, shape.channels, out);
    default:
      return copy_ids<int64_t>(stored, shape.channels, out);
  }
}

std::string ids_text(const SampleShape& shape) {
  return "rows of " + std::to_string(shape.channels) + " ids, " + std::to_string(shape.id_bytes) +
         " bytes each";
}

Status refused_ids(const std::string& sample) {
  return bad(sample + " has an id below 0 or beyond int64; correct it, or leave the sample out");
}

}  // namespace lockstep::data
