#include "data/view/mixed_dataset.h"

#include <algorithm>
#include <string>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "data/dataset/facts.h"
#include "data/image/image_decoder.h"
#include "data/source/view/remote_files.h"

namespace lockstep::data {
namespace {

std::vector<MixedPart> parts_of(const std::vector<WeightedDataset>& sets) {
  std::vector<MixedPart> parts;
  for (const WeightedDataset& set : sets)
    parts.push_back({set.dataset->fingerprint(), set.dataset->samples(), set.weight});
  return parts;
}

std::string fingerprint_of_mixture(const std::vector<MixedPart>& parts) {
  std::string text = "mixture 1";
  for (const MixedPart& part : parts)
    text += " " + part.fingerprint + " x " + std::to_string(part.weight);
  return xxh3_hex(text.data(), text.size());
}

class MixedDataset final : public Dataset {
 public:
  explicit MixedDataset(std::vector<WeightedDataset> sets)
      : parts_(parts_of(sets)), fingerprint_(fingerprint_of_mixture(parts_)) {
    for (WeightedDataset& set : sets) {
      begins_.push_back(samples_);
      samples_ += set.dataset->samples();
      classes_ = std::max(classes_, set.dataset->classes());
      const auto& files = set.dataset->files();
      files_.insert(files_.end(), files.begin(), files.end());
      if (names_.empty()) names_ = set.dataset->class_names();
      if (columns_.empty()) columns_ = set.dataset->column_names();
      sets_.push_back(std::move(set.dataset));
    }
  }

  uint64_t samples() const override { return samples_; }
  SampleShape shape() const override { return first().shape(); }
  uint32_t classes() const override { return classes_; }
  const std::string& format() const override { return first().format(); }
  const std::string& fingerprint() const override { return fingerprint_; }
  const std::vector<ChannelStatistics>& statistics() const override { return first().statistics(); }
  const std::vector<std::string>& files() const override { return files_; }
  const WantedImage* encoded_form() const override { return first().encoded_form(); }
  std::vector<std::string> class_names() const override { return names_; }
  std::vector<std::string> column_names() const override { return columns_; }
  std::span<const MixedPart> parts() const override { return parts_; }

  const uint8_t* sample(uint64_t i) const override {
    const Place place = place_of(i);
    return place.set.sample(place.sample);
  }
  uint32_t label(uint64_t i) const override {
    const Place place = place_of(i);
    return place.set.label(place.sample);
  }
  bool makes_sequences() const override { return first().makes_sequences(); }
  int64_t make_sequence(uint64_t i, int64_t* input, int64_t* labels) const override {
    const Place place = place_of(i);
    return place.set.make_sequence(place.sample, input, labels);
  }
  uint64_t counted_labels(uint64_t i) const override {
    const Place place = place_of(i);
    return place.set.counted_labels(place.sample);
  }
  std::optional<FileExtent> extent(uint64_t i) const override {
    const Place place = place_of(i);
    return place.set.extent(place.sample);
  }
  Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const override {
    const Place place = place_of(i);
    return place.set.read_encoded(place.sample, out);
  }
  std::string name_of(uint64_t i) const override {
    const Place place = place_of(i);
    return place.set.name_of(place.sample);
  }

  // All have the same options, so one of them knows how far ahead to look.
  const source::RemoteFiles* far() const override {
    for (const auto& set : sets_)
      if (set->far() != nullptr) return set->far();
    return nullptr;
  }
  std::vector<const source::RemoteFiles*> all_far() const override {
    std::vector<const source::RemoteFiles*> all;
    for (const auto& set : sets_)
      for (const source::RemoteFiles* each : set->all_far()) all.push_back(each);
    return all;
  }
  uint64_t announce(uint64_t i) const override {
    const Place place = place_of(i);
    return place.set.far() == nullptr ? 0 : place.set.announce(place.sample);
  }

  Status unchanged(std::span<const uint64_t> samples) const override {
    std::vector<std::vector<uint64_t>> by_set(sets_.size());
    for (const uint64_t i : samples) by_set[set_of(i)].push_back(i - begins_[set_of(i)]);
    for (size_t set = 0; set < sets_.size(); ++set) {
      if (!by_set[set].empty()) LOCKSTEP_RETURN_IF_ERROR(sets_[set]->unchanged(by_set[set]));
    }
    return Status::ok();
  }

 private:
  struct Place {
    const Dataset& set;
    uint64_t sample;
  };

  const Dataset& first() const { return *sets_.front(); }
  // They are few.
  size_t set_of(uint64_t i) const {
    const auto behind = std::upper_bound(begins_.begin(), begins_.end(), i);
    return static_cast<size_t>(behind - begins_.begin()) - 1;
  }
  Place place_of(uint64_t i) const {
    const size_t set = set_of(i);
    return {*sets_[set], i - begins_[set]};
  }

  const std::vector<MixedPart> parts_;
  const std::string fingerprint_;
  std::vector<std::unique_ptr<Dataset>> sets_;
  std::vector<uint64_t> begins_;  // the first sample of each
  uint64_t samples_ = 0;
  uint32_t classes_ = 0;
  std::vector<std::string> files_;
  std::vector<std::string> names_;
  std::vector<std::string> columns_;
};

const std::string& whole_of(const WeightedDataset& part) {
  return part.whole.empty() ? part.dataset->fingerprint() : part.whole;
}

// Nor two parts of one: what is held out of the first would be trained on in the second.
Status check_different(const std::vector<WeightedDataset>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (whole_of(parts[i]) != whole_of(parts[j])) continue;
      return {Code::kUsage, first_file(*parts[i].dataset) + " is of the same data set as " +
                                first_file(*parts[j].dataset) +
                                ": mix it once, with a larger weight"};
    }
  }
  return Status::ok();
}

// In the words of the job file, where mixture.h has numbers only.
std::string sets_by_number(const std::vector<WeightedDataset>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(i) + ": " + first_file(*parts[i].dataset);
  return text;
}

}  // namespace

Result<std::unique_ptr<Dataset>> mix(std::vector<WeightedDataset> parts) {
  LOCKSTEP_CHECK(!parts.empty(), "a mixture of something");
  // Each with each: who has no names of classes fits two who have others.
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      LOCKSTEP_RETURN_IF_ERROR(check_parts_fit(*parts[j].dataset, *parts[i].dataset));
  LOCKSTEP_RETURN_IF_ERROR(check_different(parts));
  if (const Status possible = check_mixture(parts_of(parts)); !possible.is_ok())
    return Status(possible.code(),
                  "data.mix: " + possible.message() + " (" + sets_by_number(parts) + ")");
  return std::unique_ptr<Dataset>(std::make_unique<MixedDataset>(std::move(parts)));
}

}  // namespace lockstep::data
