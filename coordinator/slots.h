// Which rank owns which slots: contiguous runs in ascending order, covering [0, slots) exactly.
//
// Chosen so that (1) the largest run is as small as it can be, ceil(slots / ranks), because the
// slowest rank sets the pace, and then (2) the ranks together hold as few partial sums as possible,
// because that is what travels (reduction_tree.h: a run that is a complete subtree is one partial).
// With equal power-of-two runs that is the aligned assignment.
//
// More ranks than slots: the surplus ranks, the last ones, get empty runs. They take part in every
// collective and in evaluation, and are ready to take slots over in a later generation.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/reduction_tree.h"

namespace lockstep::coordinator {

// REQUIRES: ranks > 0, slots > 0. One run per rank.
std::vector<SlotRun> assign_slots(uint32_t ranks, uint32_t slots);

// How many maximal complete subtrees of the reduction tree over [0, slots) make up `run`.
uint32_t partials_of_run(const SlotRun& run, uint32_t slots);

}  // namespace lockstep::coordinator
