#include "worker/optim/optimizer.h"

#include <utility>

#include "worker/optim/optimizers.h"
#include "worker/optim/update_range.h"

namespace lockstep {

Result<std::unique_ptr<Optimizer>> Optimizer::create(const wire::OptimizerSpec& spec,
                                                     uint64_t elements) {
  LOCKSTEP_RETURN_IF_ERROR(check_optimizer(spec));
  return std::unique_ptr<Optimizer>(new Optimizer(make_optimizer_rule(spec), elements));
}

Optimizer::Optimizer(OptimizerRule rule, uint64_t elements) : rule_(std::move(rule)) {
  for (const std::string& name : rule_.state_names) {
    buffers_.emplace_back(elements);
    state_.push_back({name, buffers_.back().data()});
  }
}

void Optimizer::update(const OptimizerStep& step, std::span<const OptimizerSegment> segments,
                       std::span<const OptimizerGroup> groups, float* params, const float* grads) {
  const UpdateFactors factors = rule_.factors(step, groups);
  UpdateBuffers buffers{.params = params, .state = {}, .grads = grads};
  for (size_t i = 0; i < state_.size(); ++i) buffers.state[i] = state_[i].data;
  for (const OptimizerSegment& segment : segments)
    update_range(factors, buffers, segment, step.keeps_zeros && segment.is_pruned);
}

}  // namespace lockstep
