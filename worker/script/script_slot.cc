// Calls of Python within a slot (script_engine.h): its samples, its gradients, and its counts.
#include <algorithm>
#include <utility>

#include "comm/base/work_in_hand.h"
#include "comm/run/plan/digest.h"
#include "worker/script/script_engine.h"
#include "worker/script/short_floats.h"

namespace lockstep {
namespace {

Status no_device() {
  return {Code::kInternal, "this run hands gradients over in the host's memory"};
}

Status no_sums() {
  return {Code::kInternal, "no sums of the device are being applied"};
}

}  // namespace

Status ScriptEngine::in_slot() const {
  if (work_) return Status::ok();
  return {Code::kUsage, "no slot is in work; backward() belongs into the loop's body"};
}

Status ScriptEngine::has_samples(std::span<const uint64_t> indices) {
  LOCKSTEP_RETURN_IF_ERROR(in_slot());
  SlotInWork& work = *work_;
  if (indices.size() != work.task.end - work.task.begin)
    return {Code::kInternal, "a slot of " + std::to_string(work.task.end - work.task.begin) +
                                 " samples got " + std::to_string(indices.size())};
  const EpochOrder order(parts_.order, work.task.epoch);
  has_batch(delivered_digest(order, work.task.epoch, work.task.begin, indices));
  return Status::ok();
}

Result<ScriptData::BatchRef> ScriptEngine::take_batch() {
  LOCKSTEP_RETURN_IF_ERROR(in_slot());
  if (work_->batch == nullptr)
    return Status(Code::kInternal, "the slot's batch was taken before, or is Python's to make");
  has_batch(work_->batch->digest);
  return std::exchange(work_->batch, nullptr);
}

void ScriptEngine::has_batch(uint64_t digest) {
  SlotInWork& work = *work_;
  work.digest = digest;
  work.has_digest = true;
  if (WorkInHand* const in_hand = driver_.view().in_hand; in_hand != nullptr) {
    if (parts_.data == nullptr) in_hand->has_read();
    in_hand->computes(work.task.step, work.task.slot);
  }
  phases().switch_to(WorkPhase::kForward);
}

Status ScriptEngine::backward_begins() {
  LOCKSTEP_RETURN_IF_ERROR(in_slot());
  SlotInWork& work = *work_;
  phases().switch_to(WorkPhase::kCommunication);
  if (work.port != nullptr) {
    work.closed = work.port->open();
    if (!work.closed.is_ok()) return work.closed;
    work.region = work.port->region();
    if (work.may_add) work.sum = work.port->sum_to_add_to();
  }
  if (device_ != nullptr) {
    float* const region = work.port != nullptr ? work.port->region_on_device() : nullptr;
    LOCKSTEP_ASSIGN_OR_RETURN(work.place, device_->begin_slot(region, work.port == nullptr));
  }
  phases().switch_to(WorkPhase::kBackward);
  return Status::ok();
}

void ScriptEngine::announce(uint32_t parameter) {
  if (work_->port != nullptr && work_->port->on_ready()) work_->port->on_ready()(parameter);
}

Status ScriptEngine::admit(uint32_t parameter, uint64_t elements) {
  LOCKSTEP_RETURN_IF_ERROR(in_slot());
  SlotInWork& work = *work_;
  if (!work.closed.is_ok()) return work.closed;
  if (work.region == nullptr || parameter >= flat().parameters.size())
    return {Code::kInternal, "a gradient came before backward had begun, or of no parameter"};
  const FlatTensor& place = flat().parameters[parameter];
  const ScriptFacts::Tensor& facts = parts_.layout.facts().parameters[parameter];
  if (elements != place.elements)
    return {Code::kUsage, "the gradient of " + facts.name + " has " + std::to_string(elements) +
                              " elements, and had " + std::to_string(place.elements) +
                              " in the trial"};
  if (work.takes[parameter]++ > 0 && !facts.is_late)
    return {Code::kUsage, "the gradient of " + facts.name +
                              " came twice in one slot, and once in the trial: what a slot "
                              "computes must not depend on the step"};
  return Status::ok();
}

Status ScriptEngine::take(uint32_t parameter, const void* data, DType dtype, uint64_t elements) {
  if (device_ != nullptr) return {Code::kInternal, "a gradient of a device came by the host"};
  LOCKSTEP_RETURN_IF_ERROR(admit(parameter, elements));
  SlotInWork& work = *work_;
  const FlatTensor& place = flat().parameters[parameter];
  const ScriptFacts::Tensor& facts = parts_.layout.facts().parameters[parameter];
  const bool is_first = work.takes[parameter] == 1;
  const Into how = is_first && work.sum == nullptr ? Into::kReplace : Into::kAdd;
  float* const to = (work.sum == nullptr ? work.region : work.sum) + place.begin;
  LOCKSTEP_RETURN_IF_ERROR(widen_floats(data, dtype, elements, how, to).with_context(facts.name));
  if (!facts.is_late) announce(parameter);
  return Status::ok();
}

Status ScriptEngine::admit_statistic(uint32_t statistic, uint64_t elements) {
  LOCKSTEP_RETURN_IF_ERROR(in_slot());
  SlotInWork& work = *work_;
  if (!work.closed.is_ok()) return work.closed;
  if (work.region == nullptr || statistic >= flat().statistics.size() ||
      elements != flat().statistics[statistic].elements)
    return {Code::kInternal, "a statistic came before backward, or is none of the trial's"};
  work.has_statistic[statistic] = true;
  return Status::ok();
}

Status ScriptEngine::take_statistic(uint32_t statistic, std::span<const float> data) {
  if (device_ != nullptr) return {Code::kInternal, "a statistic of a device came by the host"};
  LOCKSTEP_RETURN_IF_ERROR(admit_statistic(statistic, data.size()));
  std::copy(data.begin(), data.end(), work_->region + flat().statistics[statistic].begin);
  return Status::ok();
}

Result<float*> ScriptEngine::place() const {
  LOCKSTEP_RETURN_IF_ERROR(in_slot());
  if (device_ != nullptr && work_->place == nullptr)
    return Status(Code::kInternal, "a gradient came before backward had begun");
  return work_->place;
}

Status ScriptEngine::writes_on(void* stream) {
  LOCKSTEP_ASSIGN_OR_RETURN(const float* const place, this->place());
  if (place == nullptr) return no_device();
  return device_->writes_on(stream);
}

Status ScriptEngine::wrote(uint32_t parameter, uint64_t elements) {
  if (device_ == nullptr) return no_device();
  LOCKSTEP_RETURN_IF_ERROR(admit(parameter, elements));
  if (!parts_.layout.facts().parameters[parameter].is_late) announce(parameter);
  return Status::ok();
}

Status ScriptEngine::wrote_statistic(uint32_t statistic, uint64_t elements) {
  if (device_ == nullptr) return no_device();
  return admit_statistic(statistic, elements);
}

Status ScriptEngine::reads_on(void* stream) {
  if (device_ == nullptr) return no_device();
  if (reads_ == SumsRead::kNone) return no_sums();
  return device_->reads_on(stream);
}

Status ScriptEngine::has_read(void* stream) {
  if (device_ == nullptr) return no_device();
  if (reads_ == SumsRead::kNone) return no_sums();
  reads_ = SumsRead::kDone;
  return device_->has_read(stream);
}

// A gradient of zeros. Added it counts, too: -0 becomes 0.
Status ScriptEngine::leave_out(const FlatTensor& place) {
  if (work_->place != nullptr) return device_->clear(work_->place + place.begin, place.elements);
  if (work_->sum == nullptr) {
    std::fill_n(work_->region + place.begin, place.elements, 0.0f);
    return Status::ok();
  }
  for (float& sum : std::span(work_->sum + place.begin, place.elements)) sum += 0.0f;
  return Status::ok();
}

// A gradient that Python did not give is zero. Everything else is required.
Status ScriptEngine::finish_region(const ls_reply& reply) {
  SlotInWork& work = *work_;
  if (!work.has_digest || work.region == nullptr || (device_ != nullptr && work.place == nullptr))
    return {Code::kInternal, "the script's slot was done without samples or without backward()"};
  if (std::find(work.has_statistic.begin(), work.has_statistic.end(), false) !=
      work.has_statistic.end())
    return {Code::kInternal, "a statistic of the script's slot is missing"};
  const ScriptLayout& layout = parts_.layout;
  float* const control = work.region + flat().buffer.statistics;
  std::fill_n(control, flat().control_elements(), 0.0f);
  for (uint32_t i = 0; i < work.takes.size(); ++i) {
    const FlatTensor& place = flat().parameters[i];
    if (work.takes[i] == 0) LOCKSTEP_RETURN_IF_ERROR(leave_out(place));
    if (work.takes[i] == 0 || layout.facts().parameters[i].is_late) announce(i);
    control[layout.used_at(i)] = work.takes[i] == 0 ? 0.0f : 1.0f;
  }
  const auto of_step = static_cast<double>(work.task.step_samples);
  const auto samples = static_cast<double>(work.task.end - work.task.begin);
  const auto count = static_cast<double>(reply.count);
  control[kControlLoss] = static_cast<float>(reply.loss * count / of_step);
  if (layout.facts().has_counts) control[kControlWeight] = static_cast<float>(count / of_step);
  for (uint32_t i = 0; i < layout.facts().metrics.size(); ++i)
    control[kControlMetrics + i] = static_cast<float>(reply.metrics[i] * samples / of_step);
  control[layout.ends_at()] = reply.ends_run == 0 ? 0.0f : 1.0f;
  put_digest(control, work.task.slot, work.digest);
  layout.put_count(control, reply.count);
  if (parts_.on_slot) parts_.on_slot(work.task, reply.loss);
  return Status::ok();
}

}  // namespace lockstep
