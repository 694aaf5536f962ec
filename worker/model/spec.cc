#include "worker/model/spec.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "comm/base/prng.h"

namespace lockstep {
namespace {

// Number i of the stream, in [0, 1).
double share_of(uint64_t key, uint64_t i) {
  return static_cast<double>(stream_value(key, i) >> 11) * 0x1p-53;
}

// From the normal distribution, by Box and Muller's transform of two numbers of the stream.
double normal(uint64_t key, uint64_t i) {
  const double radius = std::sqrt(-2 * std::log(1 - share_of(key, 2 * i)));
  return radius * std::cos(2 * std::numbers::pi * share_of(key, 2 * i + 1));
}

}  // namespace

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
  layout_.parameters.push_back({name + ".weight", std::move(weight_shape), bound, 0, 0});
  layout_.parameters.push_back({name + ".bias", {out}, bound, 0, 0});
  return index;
}

uint32_t LayoutBuilder::add_linear(const std::string& name, int64_t in, int64_t out) {
  return add_pair(name, {out, in}, in);
}

uint32_t LayoutBuilder::add_output(const std::string& name, int64_t in, int64_t out) {
  const uint32_t weight = add_linear(name, in, out);
  layout_.parameters[weight].is_hidden = false;
  return weight;
}

uint32_t LayoutBuilder::add_conv(const std::string& name, int64_t in, int64_t out, int64_t kernel) {
  return add_pair(name, {out, in, kernel, kernel}, in * kernel * kernel);
}

uint32_t LayoutBuilder::add_conv_without_bias(const std::string& name, int64_t in, int64_t out,
                                              int64_t kernel) {
  const auto index = static_cast<uint32_t>(layout_.parameters.size());
  const double fan_out = static_cast<double>(out * kernel * kernel);
  layout_.parameters.push_back(
      {name + ".weight", {out, in, kernel, kernel}, 0, 0, std::sqrt(2 / fan_out)});
  return index;
}

LayoutBuilder::BatchNorm LayoutBuilder::add_batch_norm(const std::string& name, int64_t channels,
                                                       uint64_t values_per_sample) {
  const BatchNorm indices{static_cast<uint32_t>(layout_.parameters.size()),
                          static_cast<uint32_t>(layout_.buffers.size())};
  layout_.parameters.push_back({name + ".weight", {channels}, 0, 1, 0});
  layout_.parameters.push_back({name + ".bias", {channels}, 0, 0, 0});
  layout_.buffers.push_back({name + ".running_mean", channels, 0});
  layout_.buffers.push_back({name + ".running_var", channels, 1});
  layout_.step_counters.push_back({name + ".num_batches_tracked"});
  if (layout_.batch_norm_values == 0 || values_per_sample < layout_.batch_norm_values) {
    layout_.batch_norm_values = values_per_sample;
    layout_.batch_norm_layer = name;
  }
  return indices;
}

void init_parameter(const ParameterSpec& spec, uint64_t seed, uint32_t parameter_index,
                    float* out) {
  const uint64_t n = spec.elements();
  if (spec.values) {
    std::copy_n(spec.values.get(), n, out);
    return;
  }
  const uint64_t key =
      stream_key({static_cast<uint64_t>(StreamKind::kInit), seed, parameter_index});
  if (spec.uniform_bound > 0) {
    for (uint64_t i = 0; i < n; ++i)
      out[i] = static_cast<float>((2 * share_of(key, i) - 1) * spec.uniform_bound);
  } else if (spec.normal_std > 0) {
    for (uint64_t i = 0; i < n; ++i) out[i] = static_cast<float>(normal(key, i) * spec.normal_std);
  } else {
    std::fill(out, out + n, spec.constant);
  }
}

std::vector<int64_t> first_counters(const ModelLayout& layout) {
  std::vector<int64_t> counters;
  for (const StepCounterSpec& counter : layout.step_counters) counters.push_back(counter.initial);
  return counters;
}

void init_buffer(const BufferSpec& spec, float* out) {
  if (spec.values) {
    std::copy_n(spec.values.get(), spec.size, out);
  } else {
    std::fill_n(out, spec.size, spec.initial);
  }
}

}  // namespace lockstep
