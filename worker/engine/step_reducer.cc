#include "worker/engine/step_reducer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "comm/base/check.h"
#include "comm/collectives/flight_record.h"
#include "metrics/files/trace_log.h"

namespace lockstep {

StepReducer::StepReducer(const FlatLayout& layout, GradientBuffer& buffer, Collective& collective,
                         Generation generation, std::vector<uint64_t> bounds,
                         std::atomic<uint32_t>& progress, const GradientPath& path)
    : layout_(layout),
      buffer_(buffer),
      collective_(collective),
      generation_(generation),
      bounds_(std::move(bounds)),
      bucket_of_(layout.parameters.size()),
      tensors_in_bucket_(bounds_.size() - 1),
      order_(buckets()),
      progress_(progress),
      device_sums_(path.sums),
      devices_(path.sums == nullptr ? nullptr : path.devices),
      transfer_(path.sums == nullptr ? path.transfer : nullptr) {
  LOCKSTEP_CHECK(device_sums_ == nullptr || devices_ != nullptr || collective.world_size() == 1,
                 "sums on the device are one rank's own");
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!layout.is_trained(i)) continue;
    const auto after = std::upper_bound(bounds_.begin(), bounds_.end(), layout.parameters[i].begin);
    bucket_of_[i] = static_cast<uint32_t>(after - bounds_.begin()) - 1;
    ++tensors_in_bucket_[bucket_of_[i]];
  }
  flights_.resize(buckets());
  if (collective.world_size() > 1 && buckets() > 1 && device_sums_ == nullptr)
    lane_ = std::make_unique<CommLane>();
}

StepReducer::~StepReducer() {
  // A step that ended early may have left buckets on the lane; they return once it is aborted.
  if (lane_) (void)lane_->drain();
}

void StepReducer::begin_step(Step step, const StepMerge& merge) {
  if (lane_) (void)lane_->drain();  // of a step that ended early
  step_ = step;
  merge_ = &merge;
  schedule_ = &merge.ranks[collective_.rank()];
  opened_ = false;
  last_slot_ = -1;
  is_added_ = false;
  final_merges_.clear();
  uint32_t slots = 0;
  for (const SlotWork& work : schedule_->work) {
    if (!work.empty) {
      ++slots;
      last_slot_ = work.slot;
      last_region_ = work.region;
      final_merges_.clear();
    }
    // The merges after the last slot that computes, including those at an empty slot's place.
    final_merges_.insert(final_merges_.end(), work.merges.begin(), work.merges.end());
  }
  missing_ = tensors_in_bucket_;
  sent_ = 0;
  launched_ = 0;
  launch_error_ = Status::ok();
  std::fill(flights_.begin(), flights_.end(), 0);
  progress_.store(0, std::memory_order_relaxed);
  if (device_sums_ != nullptr) device_sums_->begin_step(slots);
  check_.reset();
  trace_ = nullptr;
}

Status StepReducer::open() {
  if (opened_) return Status::ok();
  const Tag tag{generation_, step_, Phase::kTrain, 0, 0};
  LOCKSTEP_RETURN_IF_ERROR(collective_.begin_step(tag, *merge_));
  if (devices_ != nullptr) LOCKSTEP_RETURN_IF_ERROR(devices_->begin_step(tag, *merge_));
  opened_ = true;
  return Status::ok();
}

float* StepReducer::sum_to_add_to(const SlotWork& work) {
  const bool is_on_host = device_sums_ == nullptr && transfer_ == nullptr;
  if (!is_on_host || work.merges.empty() || work.merges.front().src != work.region) return nullptr;
  is_added_ = true;
  return buffer_.partial(work.merges.front().dst);
}

void StepReducer::tensor_ready(uint32_t parameter) {
  const uint32_t bucket = bucket_of_[parameter];
  LOCKSTEP_CHECK(missing_[bucket] > 0, "a gradient came twice");
  if (--missing_[bucket] > 0) return;
  order_.completed(bucket);
  send_ready();
  launch_ready();
}

Status StepReducer::slot_done(const SlotWork& work) {
  if (work.slot >= last_slot_) return Status::ok();
  if (transfer_ != nullptr && !work.empty) {
    start_transfer(work.region, {0, layout_.buffer.elements}, 0);
    LOCKSTEP_RETURN_IF_ERROR(transfer_->wait(0));
  }
  if (device_sums_ != nullptr) {
    const ElementRange all{0, layout_.buffer.statistics};
    merge(work.merges, control());
    if (!work.empty) LOCKSTEP_RETURN_IF_ERROR(device_sums_->bring(work.region, all));
    return merge_on_device(work.merges, all);
  }
  merge_slot(work.merges, {0, layout_.buffer.elements});
  is_added_ = false;
  return Status::ok();
}

// The control section is the host's own.
void StepReducer::start_transfer(uint32_t region, const ElementRange& range, uint32_t ticket) {
  const uint64_t end = std::min(range.end, layout_.buffer.statistics);
  transfer_->start(buffer_.partial(region), {std::min(range.begin, end), end}, ticket);
}

// All but the last bucket, whose statistics come after backward.
void StepReducer::send_ready() {
  if (transfer_ == nullptr) return;
  for (; sent_ + 1 < buckets() && is_complete(sent_); ++sent_)
    start_transfer(last_region_, range_of(order_.at(sent_)), sent_);
}

void StepReducer::launch_ready() {
  if (device_sums_ != nullptr) {
    for (; launched_ + 1 < buckets() && is_complete(launched_); ++launched_)
      if (launch_error_.is_ok()) launch_error_ = sum_on_device(launched_);
    return;
  }
  if (!lane_) return;
  for (; launched_ + 1 < buckets() && is_complete(launched_); ++launched_) {
    note_queued(FlightOperation::kSum, launched_);
    lane_->post([this, position = launched_] { return merge_and_reduce(position, {}); });
  }
}

Status StepReducer::finish(const std::function<Votes()>& votes) {
  LOCKSTEP_CHECK(last_slot_ < 0 || std::all_of(missing_.begin(), missing_.end(),
                                               [](uint32_t n) { return n == 0; }),
                 "gradients are missing");
  if (device_sums_ != nullptr) return finish_on_device(votes);
  if (transfer_ != nullptr && last_slot_ >= 0) {
    send_ready();
    start_transfer(last_region_, range_of(order_.at(sent_)), sent_);
  }
  if (lane_) {
    if (last_slot_ < 0) std::fill(missing_.begin(), missing_.end(), 0);
    launch_ready();
    LOCKSTEP_RETURN_IF_ERROR(lane_->drain());
  }
  // The last bucket leaves on this thread: there is nothing left to overlap with.
  for (; launched_ < buckets(); ++launched_) {
    const bool is_last = launched_ + 1 == buckets();
    note_queued(FlightOperation::kSum, launched_);
    LOCKSTEP_RETURN_IF_ERROR(merge_and_reduce(launched_, [&] {
      if (is_last) complete_control(votes());
    }));
  }
  return order_.agree(collective_, generation_, step_);
}

Status StepReducer::merge_on_device(const std::vector<RegionMerge>& merges,
                                    const ElementRange& range) {
  for (const RegionMerge& m : merges) LOCKSTEP_RETURN_IF_ERROR(device_sums_->merge(m, range));
  return Status::ok();
}

// Enqueues on the thread of backward: a lane of its own would only wait for the device.
Status StepReducer::sum_on_device(uint32_t position) {
  const ElementRange whole = range_of(order_.at(position));
  const ElementRange range{std::min(whole.begin, layout_.buffer.statistics),
                           std::min(whole.end, layout_.buffer.statistics)};
  if (range.size() == 0) return Status::ok();
  if (last_slot_ >= 0) LOCKSTEP_RETURN_IF_ERROR(device_sums_->bring(last_region_, range));
  LOCKSTEP_RETURN_IF_ERROR(merge_on_device(final_merges_, range));
  if (devices_ == nullptr) return Status::ok();
  // Before the sum, which may keep this thread until its peers are there.
  LOCKSTEP_RETURN_IF_ERROR(device_sums_->count(position + 1));
  note_queued(FlightOperation::kGpuSum, position);
  Status status = reduce(*devices_, position, range);
  if (!status.is_ok()) return note_end(position, std::move(status));
  note_running(position);
  return status;
}

// Notes the end of every sum that the device was given in this step.
Result<uint64_t> StepReducer::wait_for_devices() {
  Flight flight(flight_, FlightOperation::kGpuWait, {generation_, step_, 0});
  Result<uint64_t> operations = devices_->wait_for_sums();
  flight.end(operations.is_ok());
  for (uint32_t position = 0; position < buckets(); ++position)
    (void)note_end(position, operations.status());
  return operations;
}

Status StepReducer::finish_on_device(const std::function<Votes()>& votes) {
  LOCKSTEP_RETURN_IF_ERROR(launch_error_);
  if (last_slot_ < 0) std::fill(missing_.begin(), missing_.end(), 0);
  for (; launched_ < buckets(); ++launched_) LOCKSTEP_RETURN_IF_ERROR(sum_on_device(launched_));
  LOCKSTEP_RETURN_IF_ERROR(device_sums_->finish());
  uint64_t operations = 0;
  if (devices_ != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(operations, wait_for_devices());  // before the agreement (R6)
    device_sums_->has_seen(buckets() + 1);  // one more than a rank that waits for sums
    progress_.store(buckets() + 1, std::memory_order_relaxed);
  }
  merge(final_merges_, control());
  complete_control(votes());
  note_queued(FlightOperation::kAgree, buckets() - 1);
  note_running(buckets() - 1);
  LOCKSTEP_RETURN_IF_ERROR(
      note_end(buckets() - 1, reduce(collective_, buckets() - 1, control(), operations)));
  return order_.agree(collective_, generation_, step_);
}

// A rank that is alone has one partial, the root of the tree.
StepSums StepReducer::step_sums() const {
  const float* on_host = collective_.reduced();
  if (device_sums_ == nullptr) return {on_host, nullptr};
  if (devices_ != nullptr) return {on_host, devices_->reduced()};
  LOCKSTEP_CHECK(schedule_->partials.size() == 1, "a rank that is alone owns every slot");
  return {on_host, device_sums_->partial(schedule_->partials.front().region)};
}

// Calls `merged` between the two; may be empty.
Status StepReducer::merge_and_reduce(uint32_t position, const std::function<void()>& merged) {
  if (transfer_ != nullptr && last_slot_ >= 0) LOCKSTEP_RETURN_IF_ERROR(transfer_->wait(position));
  const int64_t begin_ns = trace_ == nullptr ? 0 : trace_->now_ns();
  const ElementRange range = range_of(order_.at(position));
  merge_slot(final_merges_, range);
  if (merged) merged();
  note_running(position);
  Status status = note_end(position, reduce(collective_, position, range));
  if (trace_ != nullptr)
    trace_->add({TraceLane::kCommunication, "bucket",
                 "bucket " + std::to_string(order_.at(position)), begin_ns, trace_->now_ns()});
  return status;
}

void StepReducer::note_queued(FlightOperation operation, uint32_t position) {
  if (flight_ == nullptr) return;
  flights_[position] = flight_->queue(operation, {generation_, step_, order_.at(position)});
}

void StepReducer::note_running(uint32_t position) {
  if (flight_ != nullptr) flight_->run(flights_[position]);
}

Status StepReducer::note_end(uint32_t position, Status status) {
  if (flight_ != nullptr) flight_->end(flights_[position], status.is_ok());
  return status;
}

// Peers compare progress, so it is the place, which only grows, and not the bucket in it.
Status StepReducer::reduce(Collective& collective, uint32_t position, const ElementRange& range,
                           uint64_t device_operations) {
  const uint32_t bucket = order_.at(position);
  if (position + 1 > progress_.load(std::memory_order_relaxed))
    progress_.store(position + 1, std::memory_order_relaxed);
  const Tag tag{generation_,      step_, Phase::kTrain, bucket, range.size() * sizeof(float),
                device_operations};
  // On devices no rank has another rank's partials to add again.
  if (check_ && check_->bucket == bucket && device_sums_ == nullptr)
    collective.check_next_sum(check_->owner);
  return collective.all_reduce(tag, range);
}

void StepReducer::merge(const std::vector<RegionMerge>& merges, const ElementRange& range) {
  for (const RegionMerge& m : merges)
    add_into(buffer_.partial(m.dst) + range.begin, buffer_.partial(m.src) + range.begin,
             range.size());
}

// The first merge is done already for gradients that sum_to_add_to() took.
void StepReducer::merge_slot(const std::vector<RegionMerge>& merges, const ElementRange& range) {
  if (!is_added_) return merge(merges, range);
  const uint64_t begin = std::min(range.end, std::max(range.begin, layout_.buffer.gradients));
  merge({merges.front()}, {begin, range.end});
  merge({merges.begin() + 1, merges.end()}, range);
}

// After all merges: the region of an empty partial may have served a slot before, and its control
// section counts all the same.
void StepReducer::complete_control(const Votes& votes) {
  for (const FinalPartial& partial : schedule_->partials) {
    float* control = buffer_.partial(partial.region) + layout_.buffer.statistics;
    if (partial.empty) std::fill(control, control + layout_.control_elements(), 0.0f);
  }
  if (schedule_->partials.empty()) return;  // more ranks than slots: no say
  float* control = buffer_.partial(schedule_->partials.front().region) + layout_.buffer.statistics;
  control[kControlStopVotes] = votes.stop ? 1.0f : 0.0f;
  control[kControlSwitchVotes] = votes.change ? 1.0f : 0.0f;
}

}  // namespace lockstep
