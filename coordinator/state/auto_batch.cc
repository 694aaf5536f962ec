#include "coordinator/state/auto_batch.h"

#include <algorithm>
#include <bit>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep::coordinator {

uint64_t auto_global_batch(const AutoBatchLimits& given) {
  LOCKSTEP_CHECK(given.slots > 0 && !given.largest.empty(), "somebody has measured");
  const uint64_t room = *std::min_element(given.largest.begin(), given.largest.end());
  const uint64_t for_steps = given.samples / (kLeastStepsAnEpoch * given.slots);
  const uint64_t slot = std::min({room, limits::kAutoSlotSamples, for_steps});
  return given.slots * std::max(std::bit_floor(slot), given.smallest);
}

}  // namespace lockstep::coordinator
