#include "worker/session/record_queue.h"

#include <algorithm>

#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"

namespace lockstep {

bool RecordQueue::add(Generation generation, wire::StepRecord record) {
  std::unique_lock lock(mutex_);
  if (!make_room(lock, generation)) return false;
  *open_.records.add_records() = std::move(record);
  return open_.records.records_size() >= limits::kRecordBatchSteps && close_batch().is_ok();
}

void RecordQueue::add_eval(Generation generation, wire::EvalReport report) {
  std::unique_lock lock(mutex_);
  if (!make_room(lock, generation)) return;
  *open_.records.add_evals() = std::move(report);
  (void)close_batch();  // R5
}

bool RecordQueue::make_room(std::unique_lock<std::mutex>& lock, Generation generation) {
  for (bool has_told = false;; has_told = true) {
    if (generation <= cleared_through_ || has_ended_) return false;
    const bool has_room = open_.generation == generation && open_.records.evals_size() == 0 &&
                          open_.records.records_size() < limits::kRecordBatchSteps;
    const Status closed = has_room ? Status::ok() : close_batch();
    if (closed.is_ok()) break;
    if (on_full_ && !has_told) on_full_(closed);
    has_room_.wait(lock);
  }
  open_.generation = generation;
  return true;
}

bool RecordQueue::is_open() const {
  return open_.records.records_size() > 0 || open_.records.evals_size() > 0;
}

void RecordQueue::flush() {
  std::lock_guard lock(mutex_);
  (void)close_batch();  // R5
}

void RecordQueue::end() {
  std::lock_guard lock(mutex_);
  has_ended_ = true;
  has_room_.notify_all();
}

Status RecordQueue::close_batch() {
  if (!is_open()) return Status::ok();
  open_.records.set_batch(last_closed_ + 1);
  // After a spilled batch all others go to the file, or the order would be lost.
  if (spill_.size() > 0 || memory_.size() >= limits::kRecordBatchesInMemory) {
    LOCKSTEP_RETURN_IF_ERROR(spill_.push(open_.generation, open_.records));
  } else {
    memory_.push_back(open_);
  }
  ++last_closed_;
  open_.records.Clear();
  return Status::ok();
}

Status RecordQueue::refill() {
  while (spill_.size() > 0 && memory_.size() < limits::kRecordBatchesInMemory) {
    RecordBatch batch;
    LOCKSTEP_RETURN_IF_ERROR(spill_.pop(&batch.generation, &batch.records));
    memory_.push_back(std::move(batch));
  }
  return Status::ok();
}

Result<std::optional<RecordBatch>> RecordQueue::next() {
  std::lock_guard lock(mutex_);
  const uint64_t in_flight = next_sent_ - first_;
  if (in_flight >= limits::kRecordBatchesInFlight) return std::optional<RecordBatch>();
  LOCKSTEP_RETURN_IF_ERROR(refill());
  if (in_flight >= memory_.size()) return std::optional<RecordBatch>();
  ++next_sent_;
  return std::optional<RecordBatch>(memory_[in_flight]);
}

Status RecordQueue::acknowledge(uint64_t batch, uint64_t sequence) {
  std::lock_guard lock(mutex_);
  sequence_ = std::max(sequence_, sequence);
  while (!memory_.empty() && first_ <= batch) {
    memory_.pop_front();
    ++first_;
  }
  next_sent_ = std::max(next_sent_, first_);
  has_room_.notify_all();
  return refill();
}

void RecordQueue::rewind() {
  std::lock_guard lock(mutex_);
  next_sent_ = first_;
}

Status RecordQueue::clear(Generation through) {
  std::lock_guard lock(mutex_);
  cleared_through_ = std::max(cleared_through_, through);
  has_room_.notify_all();
  open_ = {};
  memory_.clear();
  if (LOCKSTEP_BUG(kNumbersOfOldIdentity)) {
    first_ = next_sent_ = last_closed_ + 1;
    return spill_.clear();
  }
  first_ = next_sent_ = 1;
  last_closed_ = 0;
  return spill_.clear();
}

bool RecordQueue::empty() const {
  std::lock_guard lock(mutex_);
  return memory_.empty() && spill_.size() == 0 && !is_open();
}

Result<RecordQueue::Unacknowledged> RecordQueue::unacknowledged(size_t limit_bytes) const {
  std::lock_guard lock(mutex_);
  Unacknowledged out;
  out.sequence = sequence_;
  size_t bytes = 0;
  const auto take = [&](const wire::StepRecords& records) {
    bytes += records.ByteSizeLong();
    if (bytes > limit_bytes) return out.complete = false;
    out.batches.push_back(records);
    return true;
  };
  for (const RecordBatch& batch : memory_)
    if (!take(batch.records)) return out;
  LOCKSTEP_RETURN_IF_ERROR(spill_.for_each(take));
  if (out.complete && is_open()) {
    // It would get this number if it were closed now.
    wire::StepRecords open = open_.records;
    open.set_batch(last_closed_ + 1);
    take(open);
  }
  return out;
}

}  // namespace lockstep
