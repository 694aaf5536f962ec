#include "comm/run/plan/check_after.h"

#include <bit>

namespace lockstep {

std::optional<uint64_t> check_ordinal(Step applied, uint64_t every) {
  if (every == 0 || applied == 0) return std::nullopt;
  const bool is_early = applied <= kLastEarlyCheck && std::has_single_bit(applied);
  if (!is_early && applied % every != 0) return std::nullopt;
  uint64_t before = (applied - 1) / every;
  for (Step early = 1; early < applied && early <= kLastEarlyCheck; early *= 2)
    before += early % every != 0 ? 1 : 0;
  return before;
}

}  // namespace lockstep
