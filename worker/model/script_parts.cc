#include "worker/model/script_parts.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <memory>
#include <string>
#include <utility>

#include "worker/model/foreign.h"
#include "worker/model/random_scope.h"

namespace lockstep {
namespace {

constexpr uint64_t kAnyKey = 1;
constexpr uint64_t kTrialBatch = 2;
constexpr int64_t kOtherCount = 1'000;

Status refused(const std::string& what) {
  return {Code::kConfig, what};
}

std::string type_of(const at::Tensor& t) {
  return c10::toString(t.scalar_type());
}

// The floats of a tensor, which lives as long as they are held.
std::shared_ptr<const float> values_of(const at::Tensor& t) {
  const auto owner = std::make_shared<at::Tensor>(t.detach().contiguous());
  return {owner, owner->const_data_ptr<float>()};
}

// Everything that is no parameter, and what it was in the file.
class Examination {
 public:
  Examination(ScriptModule& module, const data::SampleShape& shape, uint32_t classes)
      : module_(module), shape_(shape), classes_(classes) {}

  Result<ScriptParts> run() {
    LOCKSTEP_RETURN_IF_ERROR(take_parameters());
    LOCKSTEP_RETURN_IF_ERROR(watch_a_step());
    LOCKSTEP_RETURN_IF_ERROR(check_counters());
    try_one_sample();
    add_to_layout();
    return std::move(parts_);
  }

 private:
  struct Other {
    ScriptTensor place;
    at::Tensor initial;
  };

  Status take_parameters();
  Status watch_a_step();
  Status sort(const Other& other);
  Status check_counters();
  void try_one_sample();
  void add_to_layout();

  // The module's own tensors stay as the file has them; forward gets copies.
  void reset() {
    for (const Other& other : others_) other.place.set(other.initial.clone());
  }
  at::Tensor train(uint64_t batch) {
    const RandomScope random(kAnyKey, at::kCPU);
    return module_.forward(sample_input(shape_, batch, classes_), /*training=*/true);
  }

  ScriptModule& module_;
  const data::SampleShape& shape_;
  const uint32_t classes_;
  std::vector<Other> others_;
  ScriptParts parts_;
  std::vector<at::Tensor> statistics_;  // after a step, by index of parts_.statistics
  at::Tensor output_;                   // of that step
};

Status Examination::take_parameters() {
  const auto& all = module_.tensors();
  for (const ScriptTensor& t : all) {
    const at::Tensor& value = t.get();
    if (!t.is_parameter() || !value.requires_grad()) {
      others_.push_back({t, value.detach()});
      continue;
    }
    if (value.scalar_type() != at::kFloat || value.layout() != at::kStrided || value.numel() == 0)
      return refused("has a parameter " + t.name() + " of type " + type_of(value) + " with " +
                     std::to_string(value.numel()) +
                     " elements; parameters must be dense float32: call .float() before saving "
                     "(train.precision computes in shorter types)");
    for (const ScriptTensor& other : all) {
      if (&other == &t || !t.overlaps(other)) continue;
      return refused("has tensors " + t.name() + " and " + other.name() +
                     " that share a part of their memory; make one of them a copy");
    }
    parts_.parameters.push_back(t);
  }
  if (!parts_.parameters.empty()) return Status::ok();
  return refused(
      "has no parameters to train; save it without torch.jit.freeze, and with "
      "requires_grad where something is to be learnt");
}

Status Examination::watch_a_step() {
  reset();
  std::vector<std::pair<at::Tensor, uint32_t>> before;
  for (const ScriptTensor& t : module_.tensors()) before.emplace_back(t.get(), t.get()._version());
  std::vector<c10::IValue> values;
  for (const ScriptValue& v : module_.values()) values.push_back(v.get());

  output_ = train(kTrialBatch);
  for (size_t i = 0; i < values.size(); ++i) {
    const ScriptValue& v = module_.values()[i];
    if (v.get().tagKind() == values[i].tagKind() && v.get() == values[i]) continue;
    return refused("changes its attribute " + v.name +
                   " in forward, which would not survive a restart; keep such state in a buffer");
  }
  const auto is_touched = [&](const ScriptTensor& t) {
    for (size_t i = 0; i < before.size(); ++i) {
      if (module_.tensors()[i].name() != t.name()) continue;
      return !t.get().is_same(before[i].first) || t.get()._version() != before[i].second;
    }
    return false;
  };
  for (const ScriptTensor& t : parts_.parameters) {
    if (is_touched(t))
      return refused("changes its parameter " + t.name() +
                     " in forward; only the optimizer may do that");
  }
  for (const Other& other : others_) {
    // A batch norm changes its statistics without counting it as a version.
    if (!is_touched(other.place) && same_bits(other.place.get(), other.initial)) {
      parts_.constants.push_back(other.place);
    } else {
      LOCKSTEP_RETURN_IF_ERROR(sort(other));
    }
  }
  return Status::ok();
}

// One that a step has changed.
Status Examination::sort(const Other& other) {
  const at::Tensor& now = other.place.get();
  const at::Tensor& then = other.initial;
  if (now.scalar_type() == at::kFloat && then.scalar_type() == at::kFloat &&
      now.sizes() == then.sizes() && then.numel() > 0) {
    parts_.statistics.push_back(other.place);
    statistics_.push_back(now.detach().clone());
    return Status::ok();
  }
  if (now.scalar_type() == at::kLong && then.scalar_type() == at::kLong && now.numel() == 1 &&
      then.numel() == 1 && now.item<int64_t>() == then.item<int64_t>() + 1) {
    parts_.counters.push_back(other.place);
    return Status::ok();
  }
  return refused("changes its buffer " + other.place.name() + " of type " + type_of(then) +
                 " in forward; only float32 statistics of one shape may change, and int64 counters "
                 "of steps");
}

// A counter is the same on every rank after a step, not within it: nothing may depend on it.
Status Examination::check_counters() {
  if (parts_.counters.empty()) return Status::ok();
  reset();
  for (const ScriptTensor& counter : parts_.counters) counter.set(counter.get().add(kOtherCount));
  bool is_same = same_bits(train(kTrialBatch), output_);
  for (size_t i = 0; i < statistics_.size(); ++i)
    is_same = is_same && same_bits(parts_.statistics[i].get(), statistics_[i]);
  if (is_same) return Status::ok();
  return refused("gives other values when its counter " + parts_.counters[0].name() +
                 " changes; give batch norms a momentum, and keep counters that change the output "
                 "out of the module");
}

// PyTorch's batch norms refuse a single value a channel; then the engine must keep such slots away.
void Examination::try_one_sample() {
  reset();
  try {
    train(1);
  } catch (const std::exception& error) {
    parts_.layout.batch_norm_values = 1;
    parts_.layout.batch_norm_layer = "the script (\"" + one_line(error) + "\")";
  }
}

void Examination::add_to_layout() {
  reset();
  ModelLayout& layout = parts_.layout;
  for (const ScriptTensor& t : parts_.parameters)
    layout.parameters.push_back(
        {.name = t.name(), .shape = t.get().sizes().vec(), .values = values_of(t.get())});
  for (const ScriptTensor& t : parts_.statistics)
    layout.buffers.push_back(
        {.name = t.name(), .size = t.get().numel(), .values = values_of(t.get())});
  for (const ScriptTensor& t : parts_.counters)
    layout.step_counters.push_back({t.name(), t.get().item<int64_t>()});
}

}  // namespace

Result<ScriptParts> examine_script(ScriptModule& module, const data::SampleShape& shape,
                                   uint32_t classes) {
  return Examination(module, shape, classes).run();
}

}  // namespace lockstep
