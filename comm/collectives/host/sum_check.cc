// One slice of a sum, added again by ranks that did not sum it. Otherwise a wrong adder, or a wrong
// word of its memory, would reach all ranks alike, and none would see it.
#include <vector>

#include "comm/collectives/cross_check.h"
#include "comm/collectives/host/generation_collective.h"

namespace lockstep::host {

std::optional<uint64_t> GenerationCollective::check_sum(const ElementRange& range, bool direct,
                                                        uint32_t owner) {
  const ElementRange slice = slice_of(range, owner, world_size());
  if (slice.size() == 0 || !takes_part(rank(), owner, world_size())) return std::nullopt;
  // In the direct algorithm every rank has summed everything itself.
  if (direct || rank() == owner) return hash_of(reduced_ + slice.begin, slice.size());
  if (!can_read_partials()) return std::nullopt;
  std::vector<float> again(slice.size());
  sum_own(slice, again.data());
  return hash_of(again.data(), again.size());
}

// Over TCP only the partials of the own slice have arrived.
bool GenerationCollective::can_read_partials() const {
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (!peers_->is_self(r) && !peers_->link(r).shares_memory()) return false;
  }
  return true;
}

}  // namespace lockstep::host
