#include "comm/run/plan/mixture.h"

#include <algorithm>
#include <numeric>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kMostUnits = uint64_t{1} << 62;

std::vector<uint32_t> weights_of(std::span<const MixedPart> parts) {
  std::vector<uint32_t> weights;
  for (const MixedPart& part : parts) weights.push_back(part.weight);
  return weights;
}

std::vector<uint32_t> in_lowest_terms(std::span<const uint32_t> weights) {
  uint32_t divisor = 0;
  for (const uint32_t weight : weights) divisor = std::gcd(divisor, weight);
  LOCKSTEP_CHECK(divisor > 0, "a mixture has weights");
  std::vector<uint32_t> lowest;
  for (const uint32_t weight : weights) lowest.push_back(weight / divisor);
  return lowest;
}

// A set that waits for its next place in the pattern. Its debt at a place is how much of a unit it
// is due there, counted in parts of 1 / (sum of the weights).
struct Waiting {
  int64_t weight = 0;
  int64_t used = 0;
  int64_t debt(int64_t place, int64_t sum) const { return (place + 1) * weight - sum * used; }
};

// Takes, among the sets that are due at least 1 / (2k - 2) of a unit, the one whose debt would
// first be more than 1 less that, so all debts stay between the two (Tijdeman). The first of equal
// ones.
size_t next_set(const std::vector<Waiting>& sets, int64_t place, int64_t sum) {
  const int64_t parts = std::max<int64_t>(1, 2 * static_cast<int64_t>(sets.size()) - 2);
  size_t soonest = sets.size();
  int64_t least = 0;  // units until then, times the set's weight and `parts`
  for (size_t i = 0; i < sets.size(); ++i) {
    const int64_t debt = parts * sets[i].debt(place, sum);
    if (debt < sum) continue;
    const int64_t left = (parts - 1) * sum - debt;
    if (soonest == sets.size() || left * sets[soonest].weight < least * sets[i].weight) {
      soonest = i;
      least = left;
    }
  }
  LOCKSTEP_CHECK(soonest < sets.size(), "somebody is always due");
  return soonest;
}

struct Length {
  uint64_t blocks = 0;  // whole ones
  uint64_t places = 0;  // of the one after them
};

// Until the first set has had all of its samples.
Length epoch_length(const MixPattern& pattern, uint64_t samples) {
  Length length{samples / pattern.weight(0), 0};
  const uint64_t left = samples % pattern.weight(0);
  for (uint64_t seen = 0; seen < left; ++length.places)
    if (pattern.set_at(length.places) == 0) ++seen;
  return length;
}

Status usage(size_t set, const std::string& what) {
  return {Code::kUsage, "data set " + std::to_string(set) + " of the mixture " + what};
}

}  // namespace

MixPattern::MixPattern(std::span<const uint32_t> weights) : weights_(in_lowest_terms(weights)) {
  const int64_t sum = std::accumulate(weights_.begin(), weights_.end(), int64_t{0});
  std::vector<Waiting> sets;
  for (const uint32_t weight : weights_) sets.push_back({weight, 0});
  for (int64_t place = 0; place < sum; ++place) {
    const size_t set = next_set(sets, place, sum);
    sets_.push_back(static_cast<uint8_t>(set));
    counts_.push_back(static_cast<uint32_t>(sets[set].used++));
  }
}

uint64_t MixPattern::count(uint32_t set, uint64_t place) const {
  while (place > 0 && sets_[place - 1] != set) --place;
  return place == 0 ? 0 : counts_[place - 1] + 1;
}

Mixture::Mixture(std::span<const MixedPart> parts) : pattern_(weights_of(parts)) {
  const Length length = epoch_length(pattern_, parts[0].samples);
  units_ = length.blocks * pattern_.size() + length.places;
  for (uint32_t set = 0; set < parts.size(); ++set) {
    samples_.push_back(parts[set].samples);
    of_set_.push_back(length.blocks * pattern_.weight(set) + pattern_.count(set, length.places));
  }
}

Mixture::Unit Mixture::at(Epoch epoch, uint64_t position) const {
  LOCKSTEP_CHECK(position < units_, "a position of the epoch");
  const uint64_t place = position % pattern_.size();
  const uint32_t set = pattern_.set_at(place);
  const uint64_t in_epoch =
      position / pattern_.size() * pattern_.weight(set) + pattern_.count_before(place);
  const Wide unit = Wide{epoch} * of_set_[set] + in_epoch;
  return {set, static_cast<uint64_t>(unit / samples_[set]),
          static_cast<uint64_t>(unit % samples_[set])};
}

Status check_mixture(std::span<const MixedPart> parts) {
  if (parts.size() < 2 || parts.size() > limits::kMixedDatasets)
    return {Code::kUsage, "a mixture has 2 to " + std::to_string(limits::kMixedDatasets) +
                              " data sets, not " + std::to_string(parts.size())};
  uint64_t sum = 0;
  uint64_t samples = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].weight == 0) return usage(i, "has no weight");
    if (parts[i].samples == 0 || parts[i].samples > kMostUnits - samples)
      return usage(i, "has " + std::to_string(parts[i].samples) + " samples");
    sum += parts[i].weight;
    samples += parts[i].samples;
  }
  if (sum > limits::kMixWeights)
    return {Code::kUsage, "the weights of a mixture sum to " + std::to_string(sum) +
                              ", over the limit of " + std::to_string(limits::kMixWeights) +
                              "; use smaller weights"};
  if (Wide{parts[0].samples / parts[0].weight + 1} * sum > kMostUnits)
    return usage(0, "has too many samples for its weight");
  const Mixture mixture(parts);
  for (uint32_t i = 1; i < parts.size(); ++i) {
    if (mixture.units_of(i) == 0)
      return usage(i,
                   "would not give one sample to an epoch, which is one pass over data.train; give "
                   "it a larger weight, or train on it alone");
  }
  return Status::ok();
}

uint64_t units_of(std::span<const MixedPart> parts) {
  return Mixture(parts).units();
}

}  // namespace lockstep
