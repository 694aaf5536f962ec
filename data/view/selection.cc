#include "data/view/selection.h"

#include <algorithm>
#include <cmath>

#include "comm/base/check.h"
#include "comm/base/prng.h"
#include "comm/run/plan/feistel.h"

namespace lockstep::data {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kWhole = 1'000'000'000;  // billionths

uint64_t billionths(double share) {
  LOCKSTEP_CHECK(share >= 0 && share <= 1, "a share of the samples");
  return static_cast<uint64_t>(std::llround(share * static_cast<double>(kWhole)));
}

uint64_t held_out_share(uint64_t n, uint64_t parts) {
  return static_cast<uint64_t>(Wide{n} * parts / kWhole);
}

// The smallest n for which share_of(n, parts) is `count`. REQUIRES: parts > 0.
uint64_t smallest_with_share(uint64_t count, uint64_t parts) {
  return static_cast<uint64_t>((Wide{count} * kWhole + parts - 1) / parts);
}

}  // namespace

Selection::Selection(uint64_t samples, double held_out, double kept, uint64_t key)
    : samples_(samples), held_out_(billionths(held_out)), kept_(billionths(kept)), key_(key) {
  LOCKSTEP_CHECK(samples > 0 && samples <= uint64_t{1} << 62, "size of a selection");
}

// How many samples of a part lie before `end`, the end of a stripe.
uint64_t Selection::up_to(SelectionPart part, uint64_t end) const {
  const uint64_t held = held_out_share(end, held_out_);
  return part == SelectionPart::kHeldOut ? held : held_out_share(end - held, kept_);
}

// The smallest end with up_to(part, end) = count. REQUIRES: 0 < count <= size(part).
uint64_t Selection::shortest_with(SelectionPart part, uint64_t count) const {
  if (part == SelectionPart::kHeldOut) return smallest_with_share(count, held_out_);
  const uint64_t left = smallest_with_share(count, kept_);
  // end - floor(end * h) = ceil(end * (1 - h)) is at least `left` where end * (1 - h) > left - 1.
  return static_cast<uint64_t>(Wide{left - 1} * kWhole / (kWhole - held_out_)) + 1;
}

uint64_t Selection::at(SelectionPart part, uint64_t i) const {
  LOCKSTEP_CHECK(i < size(part), "place beyond the end of a selection");
  const uint64_t stripe = (shortest_with(part, i + 1) - 1) / kStripeSamples;
  const uint64_t begin = stripe * kStripeSamples;
  const uint64_t end = std::min(begin + kStripeSamples, samples_);
  uint64_t place = i - up_to(part, begin);
  if (part == SelectionPart::kKept)
    place += up_to(SelectionPart::kHeldOut, end) - up_to(SelectionPart::kHeldOut, begin);
  const uint64_t key = stream_key({key_, kSelectionVersion, stripe});
  return begin + FeistelPermutation(key, end - begin).at(place);
}

}  // namespace lockstep::data
