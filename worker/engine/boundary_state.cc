#include "worker/engine/boundary_state.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

StateTensor view(StateSection section, std::string name, DType dtype, std::vector<int64_t> shape,
                 void* data, size_t bytes) {
  return {section, std::move(name), dtype, std::move(shape), static_cast<std::byte*>(data), bytes};
}

constexpr uint32_t kDecayed = 0;  // groups of parameters
constexpr uint32_t kNotDecayed = 1;

// From a parameter's start to the next one's, in order; neighbours of one group are one segment.
// Padding may be part of it, since zeros stay zeros.
std::vector<OptimizerSegment> make_segments(const ModelLayout& model, const FlatLayout& layout,
                                            bool spare_vectors) {
  const std::vector<uint64_t> bounds = layout.tensor_bounds();
  std::vector<OptimizerSegment> segments;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const ParameterSpec& parameter = model.parameters[model.parameters.size() - 1 - i];
    const bool is_vector = parameter.shape.size() <= 1;
    const uint32_t group = is_vector && spare_vectors ? kNotDecayed : kDecayed;
    const uint64_t length = bounds[i + 1] - bounds[i];
    if (!segments.empty() && segments.back().group == group) {
      segments.back().length += length;
    } else {
      segments.push_back({bounds[i], length, group});
    }
  }
  return segments;
}

std::vector<NormRange> make_norm_ranges(const ModelLayout& model, const FlatLayout& layout) {
  std::vector<NormRange> ranges;
  for (size_t i = 0; i < model.parameters.size(); ++i)
    ranges.push_back({layout.parameters[i].begin, model.parameters[i].elements()});
  return ranges;
}

}  // namespace

Result<std::unique_ptr<BoundaryState>> BoundaryState::create(const ModelLayout& model,
                                                             const FlatLayout& layout,
                                                             uint64_t seed,
                                                             const wire::OptimizerSpec& spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                            Optimizer::create(spec, layout.buffer.gradients));
  std::unique_ptr<BoundaryState> state(
      new BoundaryState(model, layout, std::move(optimizer), spec));
  state->initialize(seed);
  return state;
}

BoundaryState::BoundaryState(const ModelLayout& model, const FlatLayout& layout,
                             std::unique_ptr<Optimizer> optimizer, const wire::OptimizerSpec& spec)
    : model_(model),
      layout_(layout),
      optimizer_(std::move(optimizer)),
      segments_(make_segments(model, layout, spec.spare_vectors())),
      groups_{{}, {.lr_scale = 1, .weight_decay_scale = 0}},
      norm_ranges_(make_norm_ranges(model, layout)),
      clip_norm_(spec.clip_norm()),
      params_(layout.buffer.gradients),
      statistics_(layout.buffer.statistics - layout.buffer.gradients),
      counters_(model.step_counters.size(), 0) {}

void BoundaryState::initialize(uint64_t seed) {
  std::fill_n(params_.data(), params_.size(), 0.0f);  // B2
  for (uint32_t i = 0; i < model_.parameters.size(); ++i)
    init_parameter(model_.parameters[i], seed, i, parameter(i));
  std::fill_n(statistics_.data(), statistics_.size(), 0.0f);
  for (size_t i = 0; i < model_.buffers.size(); ++i) {
    float* out = statistics_.data() + (layout_.statistics[i].begin - layout_.buffer.gradients);
    std::fill_n(out, layout_.statistics[i].elements, model_.buffers[i].initial);
  }
  std::fill(counters_.begin(), counters_.end(), 0);
  for (const OptimizerState& flat : optimizer_->state())
    std::fill_n(flat.data, layout_.buffer.gradients, 0.0f);
  applied_steps_ = 0;
}

float BoundaryState::grad_scale(const float* reduced) const {
  return clip_norm_ > 0 ? clip_scale(sum_of_squares(reduced, norm_ranges_), clip_norm_) : 1.0f;
}

void BoundaryState::apply(const float* reduced, uint32_t non_empty_slots, double lr) {
  const OptimizerStep step{applied_steps_, lr, grad_scale(reduced)};
  optimizer_->update(step, segments_, groups_, params_.data(), reduced);
  const auto slots = static_cast<float>(non_empty_slots);
  const float* sums = reduced + layout_.buffer.gradients;
  const uint64_t n = layout_.buffer.statistics - layout_.buffer.gradients;
  for (uint64_t i = 0; i < n; ++i) statistics_.data()[i] = sums[i] / slots;
  // Every non-empty slot counts one batch from the same boundary value; their maximum is one more.
  for (int64_t& counter : counters_) ++counter;
  ++applied_steps_;
}

std::vector<StateTensor> BoundaryState::tensors() {
  std::vector<StateTensor> out;
  for (uint32_t i = 0; i < model_.parameters.size(); ++i) {
    const ParameterSpec& spec = model_.parameters[i];
    out.push_back(view(StateSection::kParameter, spec.name, DType::kF32, spec.shape, parameter(i),
                       spec.elements() * sizeof(float)));
  }
  for (uint32_t i = 0; i < model_.buffers.size(); ++i) {
    const BufferSpec& spec = model_.buffers[i];
    out.push_back(view(StateSection::kBuffer, spec.name, DType::kF32, {spec.size},
                       const_cast<float*>(statistics(i)),
                       static_cast<size_t>(spec.size) * sizeof(float)));
  }
  for (size_t i = 0; i < counters_.size(); ++i) {
    out.push_back(view(StateSection::kBuffer, model_.step_counters[i], DType::kI64, {},
                       &counters_[i], sizeof(int64_t)));
  }
  for (const OptimizerState& flat : optimizer_->state()) {
    for (uint32_t i = 0; i < model_.parameters.size(); ++i) {
      const ParameterSpec& spec = model_.parameters[i];
      out.push_back(view(StateSection::kOptimizer, flat.name + "." + spec.name, DType::kF32,
                         spec.shape, flat.data + layout_.parameters[i].begin,
                         spec.elements() * sizeof(float)));
    }
  }
  return out;
}

}  // namespace lockstep
