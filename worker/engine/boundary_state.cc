#include "worker/engine/boundary_state.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

StateTensor view(StateSection section, std::string name, DType dtype, std::vector<int64_t> shape,
                 void* data, size_t bytes) {
  return {section, std::move(name), dtype, std::move(shape), static_cast<std::byte*>(data), bytes};
}

}  // namespace

Result<std::unique_ptr<BoundaryState>> BoundaryState::create(const ModelLayout& model,
                                                             const FlatLayout& layout,
                                                             uint64_t seed,
                                                             const wire::OptimizerSpec& spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                            Optimizer::create(spec, layout.buffer.gradients));
  std::unique_ptr<BoundaryState> state(new BoundaryState(model, layout, std::move(optimizer)));
  state->initialize(seed);
  return state;
}

BoundaryState::BoundaryState(const ModelLayout& model, const FlatLayout& layout,
                             std::unique_ptr<Optimizer> optimizer)
    : model_(model),
      layout_(layout),
      optimizer_(std::move(optimizer)),
      // One group: PyTorch's default decays every parameter alike. Padding may be part of the
      // range, since zeros stay zeros.
      segments_{{0, layout.buffer.gradients, 0}},
      groups_{OptimizerGroup{}},
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

void BoundaryState::apply(const float* reduced, uint32_t non_empty_slots, double lr) {
  optimizer_->update(applied_steps_, lr, segments_, groups_, params_.data(), reduced);
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
