#include "worker/optim/prune.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

namespace lockstep {
namespace {

constexpr uint64_t kDefaultPrunings = 100;

// Orders like the magnitude; a NaN is above everything.
uint32_t magnitude(float weight) {
  return std::bit_cast<uint32_t>(weight) & 0x7fffffffu;
}

}  // namespace

bool prunes_after(const wire::PruneSpec& spec, Step applied) {
  const auto from = static_cast<Step>(spec.from());
  const auto to = static_cast<Step>(spec.to());
  if (!prunes(spec) || applied <= from || applied > to) return false;
  const auto every = static_cast<Step>(
      spec.every() > 0 ? spec.every()
                       : std::max<uint64_t>(1, (spec.to() - spec.from()) / kDefaultPrunings));
  return applied == to || (applied - from) % every == 0;
}

double sparsity_after(const wire::PruneSpec& spec, Step applied) {
  const auto from = static_cast<double>(spec.from());
  const auto to = static_cast<double>(spec.to());
  if (!prunes(spec) || static_cast<double>(applied) <= from) return 0;
  if (static_cast<double>(applied) >= to) return spec.sparsity();
  const double rest = 1 - (static_cast<double>(applied) - from) / (to - from);
  return spec.sparsity() * (1 - rest * rest * rest);
}

void prune_smallest(float* weights, uint64_t n, double share, float* average) {
  const auto count = static_cast<uint64_t>(std::floor(share * static_cast<double>(n)));
  if (count == 0) return;
  std::vector<uint32_t> order(n);
  std::transform(weights, weights + n, order.begin(), magnitude);
  const auto last = order.begin() + static_cast<ptrdiff_t>(count - 1);
  std::nth_element(order.begin(), last, order.end());
  const uint32_t largest = *last;  // of those that go
  uint64_t ties = count - static_cast<uint64_t>(std::count_if(
                              order.begin(), last, [&](uint32_t m) { return m < largest; }));
  for (uint64_t i = 0; i < n; ++i) {
    const uint32_t of = magnitude(weights[i]);
    if (of > largest || (of == largest && ties == 0)) continue;
    if (of == largest) --ties;
    weights[i] = 0;
    if (average != nullptr) average[i] = 0;
  }
}

}  // namespace lockstep
