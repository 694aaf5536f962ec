#include "worker/device/gradient_hash.h"

#include <vector>

#include "comm/run/checkpoint/state_hash.h"

namespace lockstep {

Result<uint64_t> hash_gradients(DeviceReader& reader, const FlatLayout& layout,
                                const float* region) {
  std::vector<DeviceReader::Range> ranges;
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!layout.is_trained(i)) continue;
    const FlatTensor& tensor = layout.parameters[i];
    ranges.push_back({region + tensor.begin, tensor.elements * sizeof(float)});
  }
  CheckHash hash;
  LOCKSTEP_RETURN_IF_ERROR(reader.read(
      ranges, [&](const std::byte* piece, size_t bytes) { hash.update(piece, bytes); }));
  return hash.value();
}

}  // namespace lockstep
