#include "data/read/sample_supply.h"

#include <utility>

namespace lockstep::data {

Result<std::unique_ptr<SampleSupply>> SampleSupply::start(const Dataset& dataset,
                                                          BatchSequenceOptions sequence,
                                                          Reading* reading) {
  const Step first_step = sequence.first_step;
  const uint32_t first_slot = sequence.slots.begin;
  std::unique_ptr<SampleSupply> made(new SampleSupply(dataset, std::move(sequence), reading));
  const auto extent = dataset.extent(0);
  if (reading == nullptr || !extent || reading->ahead_limit_bytes() == 0) return made;
  if (dataset.encoded_form() == nullptr && reading->is_in_place(*extent)) {
    made->warm_.emplace(dataset, made->options_, reading->ahead_limit_bytes());
  } else if (dataset.encoded_form() != nullptr && reading->is_ahead_only_of_disk(*extent)) {
    made->watch_.emplace(reading->blocks_read());
    reading->is_on_use();
  } else {
    LOCKSTEP_RETURN_IF_ERROR(made->read_ahead_from(first_step, first_slot));
  }
  return made;
}

Status SampleSupply::read_ahead_from(Step step, uint32_t slot) {
  BatchSequenceOptions from_here = options_;
  from_here.first_step = step;
  from_here.first_slot = slot;
  auto samples = std::make_shared<SampleSequence>(std::move(from_here));
  LOCKSTEP_ASSIGN_OR_RETURN(auto ahead,
                            ReadAhead::start(
                                dataset_, [samples] { return samples->next(); }, *reading_));
  first_ = 0;
  const std::lock_guard lock(mutex_);
  ahead_ = std::move(ahead);
  if (is_stopped_) ahead_->stop();
  return Status::ok();
}

void SampleSupply::read_on_use() {
  std::unique_ptr<ReadAhead> gone;
  {
    const std::lock_guard lock(mutex_);
    gone = std::move(ahead_);
  }
  gone.reset();  // which waits for its reads
  reading_->is_on_use();
}

void SampleSupply::before(const PlannedBatch& batch) {
  if (warm_) warm_->before(batch);
  if (!watch_) return;
  if (watch_->is_from_disk() && ahead_ == nullptr) {
    // What goes on without it needs no end.
    const Status begun = read_ahead_from(batch.step, batch.slot);
    if (!begun.is_ok()) {
      reading_->goes_on_without(begun);
      watch_.reset();
      return;
    }
  } else if (!watch_->is_from_disk() && ahead_ != nullptr) {
    read_on_use();
  }
  watch_->before();
}

void SampleSupply::after(const PlannedBatch& batch) {
  first_ += batch.range.size();
  if (warm_) warm_->after(batch);
  if (watch_) watch_->after(batch.range.size());
}

void SampleSupply::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  if (ahead_ != nullptr) ahead_->stop();
}

}  // namespace lockstep::data
