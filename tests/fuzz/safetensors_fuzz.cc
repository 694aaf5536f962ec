// Any bytes as a safetensors file: no crash, and a header that is accepted keeps its invariants.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/base/check.h"
#include "comm/run/checkpoint/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace safetensors = lockstep::safetensors;
  const auto header =
      safetensors::parse_file(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!header.is_ok()) return 0;
  uint64_t next = 0;
  for (const safetensors::Entry& entry : header->tensors) {
    const auto bytes = safetensors::bytes_of(entry.type->bytes, entry.shape);
    LOCKSTEP_CHECK(bytes && *bytes == entry.end - entry.begin, "S2");
    LOCKSTEP_CHECK(entry.begin == next && !entry.name.empty(), "S1, S3");
    next = entry.end;
  }
  LOCKSTEP_CHECK(header->data_begin + next == size, "S1");
  return 0;
}
