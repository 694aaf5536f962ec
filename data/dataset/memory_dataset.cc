#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/dataset.h"
#include "data/dataset/records.h"
#include "data/dataset/statistics.h"

namespace lockstep::data {
namespace {

class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(SampleShape shape, std::vector<uint8_t> pixels, std::vector<uint32_t> labels)
      : shape_(shape),
        elements_(shape.elements()),
        pixels_(std::move(pixels)),
        labels_(std::move(labels)),
        classes_(*std::max_element(labels_.begin(), labels_.end()) + 1) {
    const Records records{format_,
                          labels_.size(),
                          shape_,
                          {pixels_},
                          [this](uint64_t i) { return sample(i); },
                          [this](uint64_t i) { return labels_[i]; }};
    fingerprint_ = fingerprint_of(records);
    for (const ChannelSums& sums : sums_of(records)) statistics_.push_back(statistics_of(sums));
  }

  uint64_t samples() const override { return labels_.size(); }
  SampleShape shape() const override { return shape_; }
  uint32_t classes() const override { return classes_; }
  const std::string& format() const override { return format_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const std::vector<ChannelStatistics>& statistics() const override { return statistics_; }
  const std::vector<std::string>& files() const override { return files_; }
  const uint8_t* sample(uint64_t i) const override { return pixels_.data() + i * elements_; }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }
  uint32_t label(uint64_t i) const override { return labels_[i]; }

 private:
  SampleShape shape_;
  uint64_t elements_;
  std::vector<uint8_t> pixels_;
  std::vector<uint32_t> labels_;
  uint32_t classes_;
  std::string format_ = "memory";
  std::string fingerprint_;
  std::vector<ChannelStatistics> statistics_;
  std::vector<std::string> files_;
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
  return std::unique_ptr<Dataset>(
      std::make_unique<MemoryDataset>(shape, std::move(pixels), std::move(labels)));
}

}  // namespace lockstep::data
