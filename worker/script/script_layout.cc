#include "worker/script/script_layout.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "comm/run/job/metric_names.h"
#include "worker/model/spec.h"

namespace lockstep {
namespace {

constexpr uint64_t kLowCount = 4096;
constexpr uint64_t kMostElements = uint64_t{1} << 40;  // far beyond any memory, and far from 2^64

Result<uint64_t> elements_of(const ScriptFacts::Tensor& tensor) {
  uint64_t elements = 1;
  for (const int64_t size : tensor.shape) {
    if (size < 0 || (size > 0 && elements > kMostElements / static_cast<uint64_t>(size)))
      return Status(Code::kConfig, tensor.name + " has a shape without a size in memory");
    elements *= static_cast<uint64_t>(size);
  }
  if (elements == 0)
    return Status(Code::kConfig, tensor.name + " has no elements; leave it out of the model");
  return elements;
}

Result<ModelLayout> model_of(const ScriptFacts& facts) {
  ModelLayout model;
  for (const ScriptFacts::Tensor& tensor : facts.parameters) {
    LOCKSTEP_RETURN_IF_ERROR(elements_of(tensor).status());
    model.parameters.push_back({.name = tensor.name, .shape = tensor.shape});
  }
  for (const ScriptFacts::Tensor& tensor : facts.statistics) {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t elements, elements_of(tensor));
    model.buffers.push_back({.name = tensor.name, .size = static_cast<int64_t>(elements)});
  }
  return model;
}

}  // namespace

Result<ScriptLayout> ScriptLayout::create(ScriptFacts facts, uint32_t slots) {
  if (facts.parameters.empty())
    return Status(Code::kUsage,
                  "the script trains no parameter: none of the model's has "
                  "requires_grad; unfreeze some");
  if (const Status metrics = check_metrics(facts.metrics); !metrics.is_ok())
    return Status(metrics.code(), "the script " + metrics.message());
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelLayout model, model_of(facts));
  ScriptLayout layout;
  layout.own_ = own_control(slots);
  layout.flat_ = make_flat_layout(model, slots, {}, facts.parameters.size() + 3);
  layout.has_late_ = std::any_of(facts.parameters.begin(), facts.parameters.end(),
                                 [](const auto& parameter) { return parameter.is_late; });
  layout.facts_ = std::move(facts);
  const BufferLayout& buffer = layout.flat_.buffer;
  try {
    layout.gradients_.resize(buffer.elements);
    layout.statistics_.resize(buffer.statistics - buffer.gradients);
  } catch (const std::bad_alloc&) {
    return Status(Code::kConfig, "there is no memory for the gradients of " +
                                     std::to_string(buffer.gradients) + " floats");
  }
  layout.used_.resize(layout.facts_.parameters.size());
  for (const FlatTensor& tensor : layout.flat_.parameters)
    layout.parameter_begins_.push_back(tensor.begin);
  for (const FlatTensor& tensor : layout.flat_.statistics)
    layout.statistic_begins_.push_back(tensor.begin - buffer.gradients);
  return layout;
}

LossFacts ScriptLayout::loss() const {
  return {.knows_right = false,
          .has_weights = facts_.has_counts,
          .metrics = facts_.metrics,
          .metric_turns = facts_.metric_turns,
          .labels_per_sample = 1};
}

void ScriptLayout::put_count(float* control, uint64_t count) const {
  const uint64_t high = count / kLowCount;
  control[count_at()] = static_cast<float>(high);
  control[count_at() + 1] = static_cast<float>(count % kLowCount);
}

double ScriptLayout::get_count(const float* control) const {
  return double{control[count_at()]} * kLowCount + double{control[count_at() + 1]};
}

void ScriptLayout::take_sums(const float* sums, uint32_t slots, float factor) {
  const BufferLayout& buffer = flat_.buffer;
  if (factor == 1) {
    if (sums != gradients_.data()) std::copy_n(sums, buffer.gradients, gradients_.data());
  } else {
    for (uint64_t i = 0; i < buffer.gradients; ++i) gradients_[i] = sums[i] * factor;
  }
  const float over = static_cast<float>(slots);
  for (uint64_t i = 0; i < statistics_.size(); ++i)
    statistics_[i] = sums[buffer.gradients + i] / over;
}

void ScriptLayout::take_used(const float* control) {
  for (size_t i = 0; i < used_.size(); ++i) used_[i] = control[used_at(i)];
}

}  // namespace lockstep
