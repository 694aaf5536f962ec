#include "worker/device/device_gradients.h"

#include <algorithm>

#include "worker/device/device_marks.h"

namespace lockstep {
namespace {

constexpr DeviceLane kLane = DeviceLane::kGradients;

uint32_t mark_of(uint32_t ticket) {
  return kFirstTicket + ticket % (kDeviceMarks - kFirstTicket);
}

}  // namespace

DeviceGradients::DeviceGradients(DeviceModule& module, const FlatLayout& layout)
    : module_(module), layout_(layout), regions_(module, layout.buffer), counter_(module) {}

DeviceGradients::~DeviceGradients() {
  for (const float* memory : pinned_) module_.unpin(const_cast<float*>(memory));
}

void DeviceGradients::pin(const float* memory) {
  if (pinned_.insert(memory).second)
    module_.pin(const_cast<float*>(memory), layout_.buffer.elements * sizeof(float));
}

void DeviceGradients::begin_step(uint32_t slots) {
  counter_.begin_step();
  regions_.lay_first_at(slots == 1 ? graph_place_ : nullptr);
}

Status DeviceGradients::begin_slot() {
  LOCKSTEP_RETURN_IF_ERROR(follow_streams(kLane));  // of a slot that ended early
  begin_private_slot();
  return finish();  // A2
}

void DeviceGradients::begin_private_slot() {
  place_ = nullptr;
  reached_.reset();
  streams_.clear();
}

// A2: kGradientsReached was set by begin_slot().
Status DeviceGradients::writes_on(void* stream) {
  if (std::find(streams_.begin(), streams_.end(), stream) != streams_.end()) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(module_.lead(stream, kGradientsReached));
  streams_.push_back(stream);
  return Status::ok();
}

Status DeviceGradients::follow_streams(DeviceLane lane) {
  for (void* stream : streams_) LOCKSTEP_RETURN_IF_ERROR(module_.follow(lane, stream));
  return Status::ok();
}

Status DeviceGradients::follow_backward() {
  LOCKSTEP_RETURN_IF_ERROR(follow_streams(kLane));
  if (!reached_) LOCKSTEP_RETURN_IF_ERROR(module_.mark(kBackwardReached, DeviceLane::kCompute));
  return module_.hold(kLane, reached_.value_or(kBackwardReached));
}

void DeviceGradients::start(float* region, const ElementRange& range, uint32_t ticket) {
  pin(region);
  const Status status = try_start(region, range, mark_of(ticket));
  std::lock_guard lock(error_mutex_);
  if (transfer_error_.is_ok()) transfer_error_ = status;
}

Status DeviceGradients::try_start(float* region, const ElementRange& range, uint32_t mark) {
  const float* from = place_ != nullptr ? place_ : regions_.partial(0);
  LOCKSTEP_RETURN_IF_ERROR(follow_backward());
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(kLane, region + range.begin, from + range.begin, range.size() * sizeof(float)));
  return module_.mark(mark, kLane);
}

Status DeviceGradients::wait(uint32_t ticket) {
  {
    std::lock_guard lock(error_mutex_);
    LOCKSTEP_RETURN_IF_ERROR(transfer_error_);
  }
  return module_.wait(mark_of(ticket));
}

Status DeviceGradients::bring(uint32_t region, const ElementRange& range) {
  LOCKSTEP_RETURN_IF_ERROR(follow_backward());
  if (place_ == nullptr || place_ == regions_.partial(region)) return Status::ok();
  return module_.copy(kLane, regions_.partial(region) + range.begin, place_ + range.begin,
                      range.size() * sizeof(float));
}

Status DeviceGradients::merge(const RegionMerge& merge, const ElementRange& range) {
  return module_.add(kLane, regions_.partial(merge.dst) + range.begin,
                     regions_.partial(merge.src) + range.begin, range.size());
}

Status DeviceGradients::finish() {
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kGradientsReached, kLane));
  return module_.hold(DeviceLane::kCompute, kGradientsReached);
}

}  // namespace lockstep
