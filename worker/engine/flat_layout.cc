#include "worker/engine/flat_layout.h"

#include <utility>

namespace lockstep {
namespace {

uint64_t padded(uint64_t elements) {
  return (elements + kCutElements - 1) / kCutElements * kCutElements;
}

}  // namespace

FlatLayout make_flat_layout(const ModelLayout& model, uint32_t slots, std::vector<bool> frozen,
                            uint64_t own) {
  FlatLayout layout;
  uint64_t end = 0;
  layout.frozen = std::move(frozen);
  layout.parameters.resize(model.parameters.size());
  const auto place = [&](bool is_trained) {
    for (size_t i = model.parameters.size(); i-- > 0;) {
      if (layout.is_trained(i) != is_trained) continue;
      layout.parameters[i] = {end, model.parameters[i].elements()};
      end += padded(layout.parameters[i].elements);
    }
  };
  place(/*is_trained=*/true);
  layout.buffer.gradients = end;
  place(/*is_trained=*/false);
  layout.parameter_elements = end;
  end = layout.buffer.gradients;
  for (const BufferSpec& buffer : model.buffers) {
    layout.statistics.push_back({end, static_cast<uint64_t>(buffer.size)});
    end += padded(static_cast<uint64_t>(buffer.size));
  }
  layout.buffer.statistics = end;
  layout.buffer.elements = end + padded(own_control(slots) + own);
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
  for (size_t i = parameters.size(); i-- > 0;)
    if (is_trained(i)) bounds.push_back(parameters[i].begin);
  bounds.push_back(buffer.gradients);
  return bounds;
}

}  // namespace lockstep
