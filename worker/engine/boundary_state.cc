#include "worker/engine/boundary_state.h"

#include <algorithm>
#include <utility>

#include "comm/run/job/metric_names.h"
#include "worker/optim/average_range.h"

namespace lockstep {
namespace {

StateTensor view(StateSection section, std::string name, DType dtype, std::vector<int64_t> shape,
                 void* data, size_t bytes) {
  return {section, std::move(name), dtype, std::move(shape), static_cast<std::byte*>(data), bytes};
}

// From a trained parameter's start to the next one's, in order; neighbours of one kind are one
// segment. Padding may be part of it, since zeros stay zeros. Muon's matrices stand alone. No range
// has parameters that get no gradient.
void plan_ranges(const ModelLayout& model, const FlatLayout& layout,
                 const std::vector<uint32_t>& group_of, bool prunes,
                 const std::vector<bool>& is_matrix, UpdatePlan* plan) {
  std::vector<OptimizerSegment>& segments = plan->segments;
  const std::vector<uint64_t> bounds = layout.tensor_bounds();
  size_t at = 0;
  for (size_t i = layout.parameters.size(); i-- > 0;) {
    if (!layout.is_trained(i)) continue;
    const uint64_t start = bounds[at];
    const uint64_t length = bounds[++at] - start;
    if (!model.parameters[i].gets_gradient) continue;
    const std::vector<int64_t>& shape = model.parameters[i].shape;
    const bool is_pruned = prunes && can_be_pruned(shape.size());
    if (!is_matrix.empty() && is_matrix[i]) {
      plan->matrices.push_back({start, shape[0], shape[1], group_of[i], is_pruned});
    } else if (!segments.empty() && segments.back().group == group_of[i] &&
               segments.back().is_pruned == is_pruned &&
               segments.back().start + segments.back().length == start) {
      segments.back().length += length;
    } else {
      segments.push_back({start, length, group_of[i], is_pruned});
    }
  }
}

UpdatePlan make_update_plan(const ModelLayout& model, const FlatLayout& layout,
                            const ParameterGroups& groups, const wire::JobSpec& job,
                            const std::vector<bool>& is_matrix) {
  UpdatePlan plan;
  plan_ranges(model, layout, groups.group_of, lockstep::prunes(job.train().prune()), is_matrix,
              &plan);
  plan.groups = groups.table;
  for (size_t i = 0; i < model.parameters.size(); ++i)
    if (layout.is_trained(i))
      plan.norm_ranges.push_back({layout.parameters[i].begin, model.parameters[i].elements()});
  for (size_t i = 0; i < model.parameters.size(); ++i)
    plan.spares_decay |= !model.parameters[i].gets_gradient && layout.is_trained(i) &&
                         job.optimizer().weight_decay() > 0 &&
                         plan.groups[groups.group_of[i]].weight_decay_scale > 0;
  plan.clip_norm = job.optimizer().clip_norm();
  plan.has_weights = model.has_weights();
  return plan;
}

}  // namespace

Result<std::unique_ptr<BoundaryState>> BoundaryState::create(const ModelLayout& model,
                                                             const FlatLayout& layout,
                                                             const wire::JobSpec& job,
                                                             MuonParts muon) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                            Optimizer::create(job.optimizer(), layout.buffer.gradients));
  LOCKSTEP_ASSIGN_OR_RETURN(const ParameterGroups groups, resolve_groups(model, job.optimizer()));
  std::unique_ptr<BoundaryState> state(
      new BoundaryState(model, layout, std::move(optimizer), groups, job, std::move(muon)));
  state->initialize(job.seed());
  return state;
}

BoundaryState::BoundaryState(const ModelLayout& model, const FlatLayout& layout,
                             std::unique_ptr<Optimizer> optimizer, const ParameterGroups& groups,
                             const wire::JobSpec& job, MuonParts muon)
    : model_(model),
      layout_(layout),
      optimizer_(std::move(optimizer)),
      muon_(std::move(muon)),
      plan_(make_update_plan(model, layout, groups, job, muon_.is_matrix)),
      scaler_(job.train()),
      prune_(job.train().prune()),
      average_rate_(lockstep::average_rate(job.train().ema())),
      params_(layout.parameter_elements),
      average_(job.train().ema() > 0 ? layout.buffer.gradients : 0),
      statistics_(layout.buffer.statistics - layout.buffer.gradients),
      counters_(model.step_counters.size(), 0) {}

void BoundaryState::initialize(uint64_t seed) {
  std::fill_n(params_.data(), params_.size(), 0.0f);  // B2
  for (uint32_t i = 0; i < model_.parameters.size(); ++i)
    init_parameter(model_.parameters[i], seed, i, parameter(i));
  std::fill_n(statistics_.data(), statistics_.size(), 0.0f);
  for (size_t i = 0; i < model_.buffers.size(); ++i) {
    init_buffer(model_.buffers[i], statistics(i));
  }
  for (size_t i = 0; i < counters_.size(); ++i) counters_[i] = model_.step_counters[i].initial;
  std::vector<StateTensor> moments;
  add_optimizer_state(moments);
  for (const StateTensor& moment : moments) std::fill_n(moment.data, moment.bytes, std::byte{0});
  begin_average();
  scaler_.reset();
  applied_steps_ = 0;
}

void BoundaryState::begin_average() {
  std::copy_n(params_.data(), average_.size(), average_.data());
}

void BoundaryState::prune() {
  const double share = sparsity_after(prune_, applied_steps_);
  for (uint32_t i = 0; i < model_.parameters.size(); ++i) {
    if (!layout_.is_trained(i) || !can_be_pruned(model_.parameters[i].shape.size())) continue;
    float* average = average_.size() == 0 ? nullptr : average_.data() + layout_.parameters[i].begin;
    prune_smallest(parameter(i), model_.parameters[i].elements(), share, average);
  }
}

float BoundaryState::grad_scale(const float* reduced, float loss_scale) const {
  const float unscale = 1 / loss_scale;
  if (plan_.clip_norm <= 0) return unscale;
  const auto factor = static_cast<double>(unscale);
  const double squares = sum_of_squares(reduced, plan_.norm_ranges) * factor * factor;
  return clip_scale(squares, plan_.clip_norm) * unscale;
}

bool BoundaryState::apply(const float* reduced, uint32_t non_empty_slots, double lr) {
  const float weight = plan_.has_weights ? reduced[layout_.buffer.statistics + kControlWeight] : 1;
  if (!is_weight(weight)) {
    ++applied_steps_;
    return pass_over_step(scaler_.state());
  }
  const float scale = scaler_.scale() * weight;
  // Skips the statistics, too: a value that overflowed in a forward would stay in them forever.
  if (scaler_.is_on() && !scaler_.update(is_finite(reduced))) {
    ++applied_steps_;
    return false;
  }
  const OptimizerStep update = next_update(lr, grad_scale(reduced, scale));
  optimizer_->update(update, plan_.segments, plan_.groups, params_.data(), reduced);
  if (!plan_.matrices.empty())
    muon_.update(plan_.matrices, update, plan_.groups,
                 {params_.data(), optimizer_->state().front().data, reduced});
  average_range(params_.data(), average_.size(), average_rate_, average_.data());
  const auto slots = static_cast<float>(non_empty_slots);
  const float* sums = reduced + layout_.buffer.gradients;
  const uint64_t n = layout_.buffer.statistics - layout_.buffer.gradients;
  for (uint64_t i = 0; i < n; ++i) statistics_.data()[i] = sums[i] / slots;
  count_step();
  return true;
}

// Gives the optimizer the number of its updates, not of steps: skipped steps moved no moment, so
// the bias correction must not count them.
OptimizerStep BoundaryState::next_update(double lr, float grad_scale) const {
  return {applied_steps_ - static_cast<Step>(scaler_.state().skipped_steps), lr, grad_scale,
          keeps_zeros_at(prune_, applied_steps_)};
}

void BoundaryState::count_step() {
  // Every non-empty slot counts one batch from the same boundary value; their maximum is one more.
  for (int64_t& counter : counters_) ++counter;
  ++applied_steps_;
}

void BoundaryState::applied_elsewhere(bool was_applied, const LossScaleState& loss_scale) {
  scaler_.state() = loss_scale;
  if (was_applied) return count_step();
  ++applied_steps_;
}

BoundaryMemory BoundaryState::memory() {
  return {params_.data(), statistics_.data(), optimizer_->state(),
          average_.size() == 0 ? nullptr : average_.data()};
}

// The optimizer's, and the average. A matrix has its momentum in the first flat buffer, and nothing
// in the second.
void BoundaryState::add_optimizer_state(std::vector<StateTensor>& out) {
  std::vector<OptimizerState> flats = optimizer_->state();
  const size_t moments = flats.size();
  if (average_.size() > 0)
    flats.push_back({std::string(kAverageName), average_.data()});  // "ema.conv1.weight"
  for (size_t flat = 0; flat < flats.size(); ++flat) {
    for (uint32_t i = 0; i < model_.parameters.size(); ++i) {
      if (!layout_.is_trained(i)) continue;
      const bool is_matrix = !muon_.is_matrix.empty() && muon_.is_matrix[i] && flat < moments;
      if (is_matrix && flat > 0) continue;
      const ParameterSpec& spec = model_.parameters[i];
      out.push_back(view(StateSection::kOptimizer,
                         (is_matrix ? kMuonMomentum : flats[flat].name) + "." + spec.name,
                         DType::kF32, spec.shape, flats[flat].data + layout_.parameters[i].begin,
                         spec.elements() * sizeof(float)));
    }
  }
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
    out.push_back(view(StateSection::kBuffer, spec.name, DType::kF32, {spec.size}, statistics(i),
                       static_cast<size_t>(spec.size) * sizeof(float)));
  }
  for (size_t i = 0; i < counters_.size(); ++i) {
    out.push_back(view(StateSection::kBuffer, model_.step_counters[i].name, DType::kI64, {},
                       &counters_[i], sizeof(int64_t)));
  }
  add_optimizer_state(out);
  if (plan_.has_weights && !scaler_.is_on())
    out.push_back(view(StateSection::kOptimizer, kSkippedStepsName, DType::kI64, {},
                       &scaler_.state().skipped_steps, sizeof(int64_t)));
  if (scaler_.is_on()) {
    LossScaleState& s = scaler_.state();
    const auto add = [&out](const char* name, DType dtype, void* data, size_t bytes) {
      out.push_back(view(StateSection::kOptimizer, name, dtype, {}, data, bytes));
    };
    add(kLossScaleName, DType::kF32, &s.scale, sizeof s.scale);
    add("loss_scale.good_steps", DType::kI64, &s.good_steps, sizeof s.good_steps);
    add(kSkippedStepsName, DType::kI64, &s.skipped_steps, sizeof s.skipped_steps);
  }
  return out;
}

}  // namespace lockstep
