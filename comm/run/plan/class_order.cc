#include "comm/run/plan/class_order.h"

#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/prng.h"

namespace lockstep {
namespace {

__extension__ using WideProduct = unsigned __int128;

uint64_t scaled(uint64_t value, uint64_t by, uint64_t over) {
  return static_cast<uint64_t>(WideProduct{value} * by / over);
}

}  // namespace

ClassOrder::ClassOrder(uint64_t key, uint64_t samples, uint32_t classes) : samples_(samples) {
  LOCKSTEP_CHECK(samples > 0 && samples <= uint64_t{1} << 62 && classes > 0, "size of an order");
  const uint64_t count = std::min<uint64_t>(classes, samples);
  for (uint64_t c = 0; c < count; ++c) {
    const uint64_t begin = scaled(samples, c, count);
    const uint64_t end = scaled(samples, c + 1, count);
    classes_.push_back({begin, FeistelPermutation(stream_value(key, c), end - begin)});
  }
}

uint64_t ClassOrder::at(uint64_t position) const {
  // The last class that begins at or before the position.
  const auto c =
      static_cast<uint64_t>((WideProduct{position + 1} * classes_.size() - 1) / samples_);
  const Class& its = classes_[c];
  return its.begin + its.inside.at(position - its.begin);
}

}  // namespace lockstep
