#include "data/dataset/dataset.h"

#include <algorithm>

namespace lockstep::data {

std::unique_ptr<Dataset> Dataset::view(DatasetFacts facts,
                                       std::function<uint64_t(uint64_t i)> number_of) const {
  const auto numbers = [number_of = std::move(number_of), here = numbers_](uint64_t i) {
    return find(here, number_of(i));
  };
  return std::unique_ptr<Dataset>(new Dataset(std::move(facts), sources_, numbers));
}

std::unique_ptr<Dataset> Dataset::join(DatasetFacts facts, std::span<const Dataset* const> parts) {
  struct Part {
    uint64_t begin = 0;  // its first sample
    size_t first_source = 0;
    Numbers numbers;
  };
  std::vector<Part> joined;
  std::vector<std::shared_ptr<const Samples>> sources;
  uint64_t samples = 0;
  for (const Dataset* part : parts) {
    joined.push_back({samples, sources.size(), part->numbers_});
    samples += part->samples();
    sources.insert(sources.end(), part->sources_.begin(), part->sources_.end());
  }
  const auto numbers = [joined = std::move(joined)](uint64_t i) {
    const auto behind =
        std::upper_bound(joined.begin(), joined.end(), i,
                         [](uint64_t sample, const Part& part) { return sample < part.begin; });
    const Part& part = *std::prev(behind);
    SamplePlace place = find(part.numbers, i - part.begin);
    place.source += part.first_source;
    return place;
  };
  return std::unique_ptr<Dataset>(new Dataset(std::move(facts), std::move(sources), numbers));
}

std::string Dataset::name_of(uint64_t i) const {
  const SamplePlace place = place_of(i);
  return sources_[place.source]->name_of(place.number);
}

std::string Dataset::label_name_of(uint64_t i) const {
  const SamplePlace place = place_of(i);
  return sources_[place.source]->label_name_of(place.number);
}

std::optional<FileExtent> Dataset::extent(uint64_t i) const {
  const SamplePlace place = place_of(i);
  return sources_[place.source]->extent(place.number);
}

Status Dataset::unchanged(std::span<const uint64_t> samples) const {
  if (!numbers_) return sources_.front()->unchanged(samples);
  std::vector<std::vector<uint64_t>> by_source(sources_.size());
  for (const uint64_t i : samples) {
    const SamplePlace place = place_of(i);
    by_source[place.source].push_back(place.number);
  }
  for (size_t s = 0; s < sources_.size(); ++s)
    if (!by_source[s].empty()) LOCKSTEP_RETURN_IF_ERROR(sources_[s]->unchanged(by_source[s]));
  return Status::ok();
}

uint64_t epoch_units(const Dataset& train) {
  return train.parts().empty() ? train.samples() : units_of(train.parts());
}

}  // namespace lockstep::data
