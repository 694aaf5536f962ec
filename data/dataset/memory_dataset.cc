#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/dataset.h"
#include "data/dataset/records.h"
#include "data/dataset/statistics.h"

namespace lockstep::data {
namespace {

class MemorySamples final : public StoredSamples, public Labels {
 public:
  MemorySamples(uint64_t sample_bytes, std::vector<uint8_t> pixels, std::vector<uint32_t> labels)
      : sample_bytes_(sample_bytes), pixels_(std::move(pixels)), labels_(std::move(labels)) {}

  DatasetFacts facts(const SampleShape& shape) const {
    const Records records{"memory",
                          labels_.size(),
                          shape,
                          {pixels_},
                          [this](uint64_t i) { return sample(i); },
                          [this](uint64_t i) { return label(i); }};
    DatasetFacts facts{.samples = labels_.size(),
                       .shape = shape,
                       .classes = *std::max_element(labels_.begin(), labels_.end()) + 1,
                       .format = records.format,
                       .fingerprint = fingerprint_of(records)};
    for (const ChannelSums& sums : sums_of(records))
      facts.statistics.push_back(statistics_of(sums));
    return facts;
  }

  const uint8_t* sample(uint64_t i) const override { return pixels_.data() + i * sample_bytes_; }
  uint32_t label(uint64_t i) const override { return labels_[i]; }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

 private:
  const uint64_t sample_bytes_;
  const std::vector<uint8_t> pixels_;
  const std::vector<uint32_t> labels_;
};

}  // namespace

Result<std::unique_ptr<Dataset>> make_memory_dataset(SampleShape shape, std::vector<uint8_t> pixels,
                                                     std::vector<uint32_t> labels) {
  if (labels.empty()) return Status(Code::kBadData, "a dataset in memory holds no sample");
  if (shape.elements() == 0 || pixels.size() != labels.size() * shape.elements())
    return Status(Code::kBadData, "a dataset in memory has " + std::to_string(pixels.size()) +
                                      " bytes for " + std::to_string(labels.size()) +
                                      " samples of " + std::to_string(shape.elements()));
  if (*std::max_element(labels.begin(), labels.end()) > limits::kLabel)
    return Status(Code::kBadData,
                  "a dataset in memory has a label above " + std::to_string(limits::kLabel));
  const auto samples =
      std::make_shared<const MemorySamples>(shape.elements(), std::move(pixels), std::move(labels));
  return std::make_unique<Dataset>(samples->facts(shape), samples);
}

}  // namespace lockstep::data
