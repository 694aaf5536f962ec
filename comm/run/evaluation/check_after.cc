#include "comm/run/evaluation/check_after.h"

#include <bit>
#include <numeric>

#include "comm/base/prng.h"

namespace lockstep {

bool PossibleEnds::include(Step applied) const {
  if (last == 0 || applied == 0) return false;
  return applied >= last || (are_at_evals && evaluation_due(evals, applied, last));
}

uint64_t check_distance(uint64_t every, uint32_t turns) {
  if (every == 0) return 0;
  while (std::gcd(every, uint64_t{turns}) != 1) ++every;
  return every;
}

std::optional<uint64_t> check_ordinal(Step applied, uint64_t every) {
  if (every == 0 || applied == 0) return std::nullopt;
  const bool is_early = applied <= kLastEarlyCheck && std::has_single_bit(applied);
  if (!is_early && applied % every != 0) return std::nullopt;
  uint64_t before = (applied - 1) / every;
  for (Step early = 1; early < applied && early <= kLastEarlyCheck; early *= 2)
    before += early % every != 0 ? 1 : 0;
  return before;
}

std::optional<uint64_t> check_turn(Step applied, uint64_t every, const PossibleEnds& ends) {
  if (const auto ordinal = check_ordinal(applied, check_distance(every, ends.evals.turns)))
    return ordinal;
  if (every == 0 || !ends.include(applied)) return std::nullopt;
  return mix64(applied);
}

}  // namespace lockstep
