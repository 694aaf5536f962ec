#include "comm/run/plan/mixed_order.h"

#include <algorithm>

namespace lockstep {
namespace {

__extension__ using Wide = unsigned __int128;

// Orders of passes that are made once an epoch. Orders of later passes are made for every sample.
constexpr uint64_t kPassesKept = 16;

}  // namespace

MixedOrder::MixedOrder(uint64_t seed, const BlockShuffle& blocks, std::span<const MixedPart> parts,
                       Epoch epoch)
    : epoch_(epoch), mixture_(parts) {
  uint64_t first_sample = 0;
  for (uint32_t set = 0; set < parts.size(); ++set) {
    const uint64_t samples = parts[set].samples;
    Part part{{seed, name_key(parts[set].fingerprint), samples, blocks, 0}, first_sample, 0, {}};
    const Wide begin = Wide{epoch} * mixture_.units_of(set);
    part.first_pass = static_cast<uint64_t>(begin / samples);
    const auto last_pass = static_cast<uint64_t>((begin + mixture_.units_of(set) - 1) / samples);
    const uint64_t passes = std::min(last_pass - part.first_pass + 1, kPassesKept);
    for (uint64_t i = 0; i < passes; ++i) part.passes.emplace_back(part.spec, part.first_pass + i);
    parts_.push_back(std::move(part));
    first_sample += samples;
  }
}

uint64_t MixedOrder::at(uint64_t position) const {
  const Mixture::Unit unit = unit_at(position);
  const Part& part = parts_[unit.set];
  const uint64_t pass = unit.pass - part.first_pass;
  const uint64_t sample = pass < part.passes.size()
                              ? part.passes[pass].at(unit.position)
                              : PassOrder(part.spec, unit.pass).at(unit.position);
  return part.first_sample + sample;
}

}  // namespace lockstep
