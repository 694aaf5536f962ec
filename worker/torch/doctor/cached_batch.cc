#include "worker/torch/doctor/cached_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/run/plan/epoch_order.h"
#include "data/loader/job_order.h"
#include "data/loader/sample_reader.h"

namespace lockstep {
namespace {

// Nothing can happen to cached samples.
class CachedSamples : public data::StoredSamples {
 public:
  CachedSamples(uint64_t sample_bytes, std::vector<uint8_t> stored)
      : sample_bytes_(sample_bytes), stored_(std::move(stored)) {}

  const uint8_t* sample(uint64_t i) const final { return stored_.data() + i * sample_bytes_; }
  Status unchanged(std::span<const uint64_t>) const final { return Status::ok(); }

 private:
  const uint64_t sample_bytes_;
  const std::vector<uint8_t> stored_;
};

class CachedImages final : public CachedSamples, public data::Labels, public data::SampleFields {
 public:
  CachedImages(uint64_t sample_bytes, std::vector<uint8_t> stored, std::vector<uint32_t> labels,
               uint64_t record_bytes, std::vector<std::byte> records)
      : CachedSamples(sample_bytes, std::move(stored)),
        labels_(std::move(labels)),
        record_bytes_(record_bytes),
        records_(std::move(records)) {}

  uint32_t label(uint64_t i) const override { return labels_[i]; }
  Status read_record(uint64_t i, std::byte* record) const override {
    std::memcpy(record, records_.data() + i * record_bytes_, record_bytes_);
    return Status::ok();
  }

 private:
  const std::vector<uint32_t> labels_;
  const uint64_t record_bytes_;
  const std::vector<std::byte> records_;
};

// Holds the inputs of each sequence, and its labels after them.
class CachedSequences final : public data::Sequences {
 public:
  CachedSequences(const data::As<data::Sequences>& of, const EpochOrder& order, uint64_t samples)
      : inputs_(of.dataset().shape().elements()), each_(inputs_ + of.dataset().shape().labels()) {
    values_.resize(samples * each_);
    for (uint64_t i = 0; i < samples; ++i) {
      int64_t* const input = values_.data() + i * each_;
      const auto [from, number] = of.at(order.at(i));
      largest_.push_back(from.make_sequence(number, input, input + inputs_));
      counted_.push_back(from.counted_labels(number));
    }
  }

  int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const override {
    const int64_t* const from = values_.data() + i * each_;
    std::copy(from, from + inputs_, input);
    std::copy(from + inputs_, from + each_, labels);
    return largest_[i];
  }
  uint64_t counted_labels(uint64_t i) const override { return counted_[i]; }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

 private:
  const uint64_t inputs_;
  const uint64_t each_;  // values of a sample
  std::vector<int64_t> values_;
  std::vector<int64_t> largest_;
  std::vector<uint64_t> counted_;
};

Status copy_image(const data::SampleReader& reader, data::SampleHand& hand, uint64_t i,
                  uint8_t* out, std::byte* record) {
  int64_t label = 0;
  return reader.read(i, reinterpret_cast<std::byte*>(out), &label, &hand, {}, {}, record);
}

}  // namespace

Result<std::unique_ptr<data::Dataset>> cache_batch(const data::Dataset& dataset,
                                                   const wire::JobSpec& job, uint64_t samples) {
  const uint64_t count = std::min(samples, data::epoch_units(dataset));
  const EpochOrder order(data::job_order(job, dataset), /*epoch=*/0);
  const data::SampleShape& shape = dataset.shape();
  data::DatasetFacts facts{.samples = count,
                           .shape = shape,
                           .classes = dataset.classes(),
                           .format = dataset.format(),
                           .fingerprint = dataset.fingerprint(),
                           .statistics = dataset.statistics(),
                           .files = dataset.files()};
  if (const auto sequences = dataset.as<data::Sequences>())
    return std::make_unique<data::Dataset>(
        std::move(facts), std::make_shared<const CachedSequences>(*sequences, order, count));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto reader,
      data::SampleReader::create(dataset,
                                 {job.data().transforms().begin(), job.data().transforms().end()},
                                 dataset.statistics(), data::ImageForm::kStored));
  const uint64_t bytes = shape.stored_bytes();
  const bool is_image = shape.has_bytes();
  const auto stored = dataset.as<data::StoredSamples>();
  const auto labels = dataset.as<data::Labels>();
  std::vector<uint8_t> values(count * bytes);
  std::vector<uint32_t> labels_of_values;
  const uint64_t record_bytes = shape.record_bytes();
  std::vector<std::byte> records(count * record_bytes);
  const auto fields = dataset.as<data::SampleFields>();
  data::SampleHand hand;
  for (uint64_t i = 0; i < count; ++i) {
    uint8_t* const out = values.data() + i * bytes;
    const data::SamplePlace place = dataset.place_of(order.at(i));
    std::byte* const record = records.data() + i * record_bytes;
    if (is_image) {
      LOCKSTEP_RETURN_IF_ERROR(copy_image(reader, hand, order.at(i), out, record));
    } else {
      if (record_bytes > 0) {
        const auto [from, number] = fields->at(place);
        LOCKSTEP_RETURN_IF_ERROR(from.read_record(number, record));
      }
      const auto [from, number] = stored->at(place);
      std::memcpy(out, from.sample(number), bytes);
    }
    if (!labels) continue;
    const auto [from, number] = labels->at(place);
    labels_of_values.push_back(from.label(number));
  }
  if (!labels)
    return std::make_unique<data::Dataset>(
        std::move(facts), std::make_shared<const CachedSamples>(bytes, std::move(values)));
  if (is_image) facts.shape.channels_last = false;
  return std::make_unique<data::Dataset>(
      std::move(facts),
      std::make_shared<const CachedImages>(bytes, std::move(values), std::move(labels_of_values),
                                           record_bytes, std::move(records)));
}

}  // namespace lockstep
