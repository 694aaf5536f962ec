#include "worker/doctor/cached_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/order/epoch_order.h"
#include "data/read/job_order.h"
#include "data/read/sample_reader.h"

namespace lockstep {
namespace {

// Some samples of a data set, which is otherwise as it says; nothing can happen to them.
class CachedSamples : public data::Dataset {
 public:
  explicit CachedSamples(const data::Dataset& of) : shape_(of.shape()), of_(of) {}

  data::SampleShape shape() const final { return shape_; }
  uint32_t classes() const final { return of_.classes(); }
  const std::string& format() const final { return of_.format(); }
  const std::string& fingerprint() const final { return of_.fingerprint(); }
  const std::vector<data::ChannelStatistics>& statistics() const final { return of_.statistics(); }
  const std::vector<std::string>& files() const final { return of_.files(); }
  Status unchanged(std::span<const uint64_t>) const final { return Status::ok(); }

 protected:
  data::SampleShape shape_;

 private:
  const data::Dataset& of_;
};

class CachedBatch final : public CachedSamples {
 public:
  CachedBatch(const data::Dataset& of, std::vector<uint8_t> stored, std::vector<uint32_t> labels)
      : CachedSamples(of), stored_(std::move(stored)), labels_(std::move(labels)) {
    if (!shape_.is_sequence()) shape_.channels_last = false;
  }

  uint64_t samples() const override { return labels_.size(); }
  const uint8_t* sample(uint64_t i) const override {
    return stored_.data() + i * shape_.stored_bytes();
  }
  uint32_t label(uint64_t i) const override { return labels_[i]; }

 private:
  std::vector<uint8_t> stored_;
  std::vector<uint32_t> labels_;  // of sequences zeros: theirs are among the tokens
};

// Sequences that are made: the inputs of each, and behind them its labels.
class CachedSequences final : public CachedSamples {
 public:
  CachedSequences(const data::Dataset& of, const data::EpochOrder& order, uint64_t samples)
      : CachedSamples(of), inputs_(of.shape().elements()), each_(inputs_ + of.shape().labels()) {
    values_.resize(samples * each_);
    for (uint64_t i = 0; i < samples; ++i) {
      int64_t* const input = values_.data() + i * each_;
      largest_.push_back(of.make_sequence(order.at(i), input, input + inputs_));
      counted_.push_back(of.counted_labels(order.at(i)));
    }
  }

  uint64_t samples() const override { return largest_.size(); }
  const uint8_t* sample(uint64_t) const override { return nullptr; }
  uint32_t label(uint64_t) const override { return 0; }
  bool makes_sequences() const override { return true; }
  int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const override {
    const int64_t* const from = values_.data() + i * each_;
    std::copy(from, from + inputs_, input);
    std::copy(from + inputs_, from + each_, labels);
    return largest_[i];
  }
  uint64_t counted_labels(uint64_t i) const override { return counted_[i]; }

 private:
  const uint64_t inputs_;
  const uint64_t each_;  // values of a sample
  std::vector<int64_t> values_;
  std::vector<int64_t> largest_;
  std::vector<uint64_t> counted_;
};

Status copy_image(const data::SampleReader& reader, data::SampleHand& hand, uint64_t i,
                  uint8_t* out, uint32_t* label) {
  int64_t read = 0;
  LOCKSTEP_RETURN_IF_ERROR(reader.read(i, reinterpret_cast<std::byte*>(out), &read, &hand));
  *label = static_cast<uint32_t>(read);
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<data::Dataset>> cache_batch(const data::Dataset& dataset,
                                                   const wire::JobSpec& job, uint64_t samples) {
  const uint64_t count = std::min(samples, data::epoch_units(dataset));
  const data::SampleShape shape = dataset.shape();
  const data::EpochOrder order(data::job_order(job, dataset), /*epoch=*/0);
  if (dataset.makes_sequences())
    return std::unique_ptr<data::Dataset>(std::make_unique<CachedSequences>(dataset, order, count));
  std::vector<uint8_t> stored(count * shape.stored_bytes());
  std::vector<uint32_t> labels(count);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto reader,
      data::SampleReader::create(dataset,
                                 {job.data().transforms().begin(), job.data().transforms().end()},
                                 dataset.statistics(), data::ImageForm::kStored));
  data::SampleHand hand;
  for (uint64_t i = 0; i < count; ++i) {
    uint8_t* const out = stored.data() + i * shape.stored_bytes();
    if (!shape.is_sequence() && !shape.is_row) {
      LOCKSTEP_RETURN_IF_ERROR(copy_image(reader, hand, order.at(i), out, &labels[i]));
      continue;
    }
    std::memcpy(out, dataset.sample(order.at(i)), shape.stored_bytes());
    if (shape.is_row) labels[i] = dataset.label(order.at(i));
  }
  return std::unique_ptr<data::Dataset>(
      std::make_unique<CachedBatch>(dataset, std::move(stored), std::move(labels)));
}

}  // namespace lockstep
