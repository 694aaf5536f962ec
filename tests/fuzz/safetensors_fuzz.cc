// Any bytes as a safetensors file: no crash, and a header that is accepted keeps its invariants.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/base/check.h"
#include "worker/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header_bytes = lockstep::parse_safetensors_prefix(file, size);
  if (!header_bytes.is_ok()) return 0;
  const auto header = lockstep::parse_safetensors_header(
      file.substr(lockstep::kSafetensorsPrefixBytes, *header_bytes), size);
  if (!header.is_ok()) return 0;
  uint64_t next = 0;
  for (const lockstep::SafetensorsEntry& entry : header->tensors) {
    const auto bytes = lockstep::tensor_bytes(entry.dtype, entry.shape);
    LOCKSTEP_CHECK(bytes && *bytes == entry.end - entry.begin, "S2");
    LOCKSTEP_CHECK(entry.begin == next && !entry.name.empty(), "S1, S3");
    next = entry.end;
  }
  LOCKSTEP_CHECK(header->data_begin + next == size, "S1");
  return 0;
}
