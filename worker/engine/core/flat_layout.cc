#include "worker/engine/core/flat_layout.h"

namespace lockstep {
namespace {

uint64_t padded(uint64_t elements) {
  return (elements + kCutElements - 1) / kCutElements * kCutElements;
}

}  // namespace

FlatLayout make_flat_layout(const ModelLayout& model, uint32_t slots) {
  FlatLayout layout;
  uint64_t end = 0;
  layout.parameters.resize(model.parameters.size());
  for (size_t i = model.parameters.size(); i-- > 0;) {
    layout.parameters[i] = {end, model.parameters[i].elements()};
    end += padded(layout.parameters[i].elements);
  }
  layout.buffer.gradients = end;
  for (const BufferSpec& buffer : model.buffers) {
    layout.statistics.push_back({end, static_cast<uint64_t>(buffer.size)});
    end += padded(static_cast<uint64_t>(buffer.size));
  }
  layout.buffer.statistics = end;
  layout.buffer.elements = end + padded(kControlDigests + uint64_t{kDigestElements} * slots);
  return layout;
}

void put_digest(float* control, uint32_t slot, uint64_t digest) {
  float* out = control + kControlDigests + uint64_t{kDigestElements} * slot;
  for (uint32_t i = 0; i < kDigestElements; ++i)
    out[i] = static_cast<float>(static_cast<uint16_t>(digest >> (16 * i)));
}

uint64_t get_digest(const float* control, uint32_t slot) {
  const float* in = control + kControlDigests + uint64_t{kDigestElements} * slot;
  uint64_t digest = 0;
  for (uint32_t i = 0; i < kDigestElements; ++i)
    digest |= static_cast<uint64_t>(static_cast<uint16_t>(in[i])) << (16 * i);
  return digest;
}

std::vector<uint64_t> FlatLayout::tensor_bounds() const {
  std::vector<uint64_t> bounds;
  for (size_t i = parameters.size(); i-- > 0;) bounds.push_back(parameters[i].begin);
  bounds.push_back(buffer.gradients);
  return bounds;
}

}  // namespace lockstep
