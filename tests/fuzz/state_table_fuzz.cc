// Any bytes as the table of a transferred state: no crash, and an accepted table keeps its
// invariants and is the same after another round.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/base/check.h"
#include "comm/run/checkpoint/safetensors.h"
#include "comm/run/checkpoint/state_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto table = lockstep::parse_state_table(bytes);
  if (!table.is_ok()) return 0;
  uint64_t sum = 0;
  for (const lockstep::StateTensor& tensor : table->tensors) {
    const auto expected = lockstep::tensor_bytes(tensor.dtype, tensor.shape);
    LOCKSTEP_CHECK(expected && *expected == tensor.bytes && !tensor.name.empty(), "B1, B2");
    sum += tensor.bytes;
  }
  LOCKSTEP_CHECK(sum == table->bytes, "B2");
  const auto again = lockstep::state_table(table->tensors);
  LOCKSTEP_CHECK(again.is_ok() && *again == bytes, "B3");
  return 0;
}
