// The lanes of a plain module, and the streams of others: what is late, and when it runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "tests/unit/engine/plain_module.h"
#include "worker/cuda/kernels/slot_values.h"
#include "worker/device/device_marks.h"

namespace lockstep::testing {

Status PlainModule::copy(DeviceLane which, void* to, const void* from, size_t bytes) {
  tell("copy", static_cast<uint32_t>(which), to, from, bytes);
  std::lock_guard lock(mutex_);
  const bool to_host = !is_of_device(to);
  EXPECT_TRUE(is_of_device(from) || !to_host) << "a copy from the host to the host";
  if (which != DeviceLane::kInputs && (to_host || !is_of_device(from)))
    largest_copy = std::max<uint64_t>(largest_copy, bytes);
  if (which == DeviceLane::kGradients && !to_host && is_of_device(from)) copied_gradients += bytes;
  if (to_host && !is_in(host_, to) && !is_in(pinned_, to))
    largest_slow_copy = std::max<uint64_t>(largest_slow_copy, bytes);
  if (to_host && copies_to_fail > 0) {
    --copies_to_fail;
    return {Code::kInternal, "the device is gone"};
  }
  if (which == DeviceLane::kCompute && has_late_compute) {
    push(which, [to, from, bytes] { std::memcpy(to, from, bytes); });
    return Status::ok();
  }
  if (which == DeviceLane::kCompute && !to_host) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return Status::ok();
  }
  ++lane(which).enqueued;
  if (which != DeviceLane::kCompute) {
    const bool is_of_samples = which == DeviceLane::kInputs && bytes > sizeof(SlotValues);
    const auto takes = is_of_samples ? samples_take : std::chrono::milliseconds(0);
    sample_copies += is_of_samples ? 1 : 0;
    value_copies += which == DeviceLane::kInputs && !is_of_samples ? 1 : 0;
    lane(which).late.push_back([to, from, bytes, takes] {
      std::this_thread::sleep_for(takes);
      std::memcpy(to, from, bytes);
    });
    return Status::ok();
  }
  const auto* begin = static_cast<const std::byte*>(from);
  lane(which).late.push_back([to, now = std::vector<std::byte>(begin, begin + bytes)] {
    if (!now.empty()) std::memcpy(to, now.data(), now.size());
  });
  return Status::ok();
}

Status PlainModule::mark(uint32_t mark, DeviceLane which) {
  tell("mark", mark, static_cast<uint32_t>(which));
  if (throws_in_backward && mark >= kFirstRecorded) throw std::runtime_error("the stream is gone");
  std::lock_guard lock(mutex_);
  marks_[mark] = {which, lane(which).enqueued};
  return Status::ok();
}

void PlainModule::run_to(const Place& place) {
  run(lane(place.lane), place.tasks);
}

// A task may run tasks of other lanes, which come before it.
void PlainModule::run(Lane& late, uint64_t tasks) {
  while (late.enqueued - late.late.size() < tasks) {
    const std::function<void()> first = std::move(late.late.front());
    late.late.pop_front();
    first();
  }
}

void PlainModule::push(DeviceLane which, std::function<void()> task) {
  ++lane(which).enqueued;
  lane(which).late.push_back(std::move(task));
}

void* PlainModule::make_stream() {
  std::lock_guard lock(mutex_);
  return &streams_.emplace_back();
}

void PlainModule::enqueue(void* stream, std::function<void()> work) {
  std::lock_guard lock(mutex_);
  Lane& late = *static_cast<Lane*>(stream);
  ++late.enqueued;
  late.late.push_back(std::move(work));
}

void PlainModule::finish_stream(void* stream) {
  std::lock_guard lock(mutex_);
  Lane& late = *static_cast<Lane*>(stream);
  run(late, late.enqueued);
}

Status PlainModule::follow(DeviceLane which, void* stream) {
  std::lock_guard lock(mutex_);
  Lane& late = *static_cast<Lane*>(stream);
  const uint64_t tasks = late.enqueued;
  if (which == DeviceLane::kCompute && !has_late_compute) {
    run(late, tasks);
  } else {
    push(which, [&late, tasks] { run(late, tasks); });
  }
  return Status::ok();
}

Status PlainModule::lead(void* stream, uint32_t mark) {
  std::lock_guard lock(mutex_);
  const auto found = marks_.find(mark);
  if (found == marks_.end()) return Status::ok();
  Lane& late = *static_cast<Lane*>(stream);
  ++late.enqueued;
  late.late.push_back([this, place = found->second] { run_to(place); });
  return Status::ok();
}

Status PlainModule::hold(DeviceLane which, uint32_t mark) {
  EXPECT_EQ(told, nullptr) << "a lane is held in a recording, and drawn into it";
  std::lock_guard lock(mutex_);
  if (which == DeviceLane::kGradients) gradients_held.push_back(mark);
  const auto found = marks_.find(mark);
  if (found == marks_.end()) return Status::ok();
  if (has_late_compute) {
    push(which, [this, place = found->second] { run_to(place); });
  } else if (which == DeviceLane::kCompute) {
    run_to(found->second);
  }
  return Status::ok();
}

Status PlainModule::wait(uint32_t mark) {
  EXPECT_EQ(told, nullptr) << "a recording cannot wait";
  std::lock_guard lock(mutex_);
  const auto found = marks_.find(mark);
  if (found != marks_.end()) run_to(found->second);
  return Status::ok();
}

}  // namespace lockstep::testing
