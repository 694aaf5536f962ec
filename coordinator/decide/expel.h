// Expels places from the run: no worker there takes part any more (corruption.h, C1).
//
// Thread-safety: pure functions. Part of decide(), like decide_internal.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {

// "local rank 1 of node a, local rank 0 of node b"; each place once.
std::string names_of(const std::vector<WitnessEntry>& witnesses);

// Where a check found a place wrong. goes_on: decide() does not cut the lineage, but taints it from
// `step` on.
struct Wrong {
  Generation generation = 0;
  Step step = 0;
  bool goes_on = false;
};
void expel(Turn& turn, const Place& place, const Wrong& wrong);

// C3: takes the checkpoints that a worker there wrote from step `since` on out of the lineage.
void disown_checkpoints(Turn& turn, const Place& place, Step since);

// Removes members of the present, the planned and the last started generation at expelled places,
// like members that died. Nothing: there are none.
std::optional<Reason> evict_expelled(Turn& turn);

}  // namespace lockstep::coordinator
