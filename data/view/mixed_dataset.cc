#include "data/view/mixed_dataset.h"

#include <algorithm>
#include <string>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "data/dataset/facts.h"

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

DatasetFacts facts_of_mixture(const std::vector<WeightedDataset>& sets) {
  const Dataset& first = *sets.front().dataset;
  const std::vector<MixedPart> parts = parts_of(sets);
  DatasetFacts facts{.shape = first.shape(),
                     .format = first.format(),
                     .fingerprint = fingerprint_of_mixture(parts),
                     .statistics = first.statistics(),
                     .notes = first.notes(),
                     .parts = parts};
  for (const WeightedDataset& set : sets) {
    const DatasetFacts& own = set.dataset->facts();
    facts.samples += own.samples;
    facts.classes = std::max(facts.classes, own.classes);
    facts.files.insert(facts.files.end(), own.files.begin(), own.files.end());
    facts.far.insert(facts.far.end(), own.far.begin(), own.far.end());
    if (facts.class_names.empty()) facts.class_names = own.class_names;
    if (facts.column_names.empty()) facts.column_names = own.column_names;
  }
  return facts;
}

const std::string& whole_of(const WeightedDataset& part) {
  return part.whole.empty() ? part.dataset->fingerprint() : part.whole;
}

// Refuses two parts of one data set, too: samples held out of one would be trained on in the other.
Status check_different(const std::vector<WeightedDataset>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (whole_of(parts[i]) != whole_of(parts[j])) continue;
      return {Code::kUsage, first_file(*parts[i].dataset) + " belongs to the same data set as " +
                                first_file(*parts[j].dataset) +
                                "; name the data set once, with a larger weight"};
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
  // Compares every pair: a part without class names fits two parts whose names differ.
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      LOCKSTEP_RETURN_IF_ERROR(check_parts_fit(*parts[j].dataset, *parts[i].dataset));
  LOCKSTEP_RETURN_IF_ERROR(check_different(parts));
  if (const Status possible = check_mixture(parts_of(parts)); !possible.is_ok())
    return Status(possible.code(),
                  "data.mix: " + possible.message() + " (" + sets_by_number(parts) + ")");
  std::vector<const Dataset*> sets;
  for (const WeightedDataset& part : parts) sets.push_back(part.dataset.get());
  return Dataset::join(facts_of_mixture(parts), sets);
}

}  // namespace lockstep::data
