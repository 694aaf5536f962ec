#include "worker/model/spec.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/base/prng.h"

namespace lockstep {

uint64_t ParameterSpec::elements() const {
  uint64_t n = 1;
  for (const int64_t size : shape) n *= static_cast<uint64_t>(size);
  return n;
}

// kaiming_uniform(a = sqrt(5)) for the weight and fan-in for the bias come to the same bound.
uint32_t LayoutBuilder::add_pair(const std::string& name, std::vector<int64_t> weight_shape,
                                 int64_t fan_in) {
  const auto index = static_cast<uint32_t>(layout_.parameters.size());
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  const int64_t out = weight_shape[0];
  layout_.parameters.push_back({name + ".weight", std::move(weight_shape), bound, 0});
  layout_.parameters.push_back({name + ".bias", {out}, bound, 0});
  return index;
}

uint32_t LayoutBuilder::add_linear(const std::string& name, int64_t in, int64_t out) {
  return add_pair(name, {out, in}, in);
}

uint32_t LayoutBuilder::add_conv(const std::string& name, int64_t in, int64_t out, int64_t kernel) {
  return add_pair(name, {out, in, kernel, kernel}, in * kernel * kernel);
}

LayoutBuilder::BatchNorm LayoutBuilder::add_batch_norm(const std::string& name, int64_t channels,
                                                       uint64_t values_per_sample) {
  const BatchNorm indices{static_cast<uint32_t>(layout_.parameters.size()),
                          static_cast<uint32_t>(layout_.buffers.size())};
  layout_.parameters.push_back({name + ".weight", {channels}, 0, 1});
  layout_.parameters.push_back({name + ".bias", {channels}, 0, 0});
  layout_.buffers.push_back({name + ".running_mean", channels, 0});
  layout_.buffers.push_back({name + ".running_var", channels, 1});
  layout_.step_counters.push_back(name + ".num_batches_tracked");
  if (layout_.batch_norm_values == 0 || values_per_sample < layout_.batch_norm_values) {
    layout_.batch_norm_values = values_per_sample;
    layout_.batch_norm_layer = name;
  }
  return indices;
}

void init_parameter(const ParameterSpec& spec, uint64_t seed, uint32_t parameter_index,
                    float* out) {
  const uint64_t n = spec.elements();
  if (spec.uniform_bound == 0) {
    std::fill(out, out + n, spec.constant);
    return;
  }
  const uint64_t key =
      stream_key({static_cast<uint64_t>(StreamKind::kInit), seed, parameter_index});
  for (uint64_t i = 0; i < n; ++i) {
    const double share = static_cast<double>(stream_value(key, i) >> 11) * 0x1p-53;  // [0, 1)
    out[i] = static_cast<float>((2 * share - 1) * spec.uniform_bound);
  }
}

}  // namespace lockstep
