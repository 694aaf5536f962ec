// Which rank owns which slots: contiguous runs in ascending order, covering [0, slots) exactly.
//
// A rank has a cost: the time that it needs for a slot, relative to the others. Chosen so that
// (1) the longest time of a rank, its slots x its cost, is as short as it can be, because the
// slowest rank sets the pace. Every rank holds at least one slot all the same; who needs longer for
// that one than the rest for all of theirs holds no other, and the time of the rest is the
// shortest. Then (2) the ranks together hold as few partial sums as possible, because that is what
// travels (reduction_tree.h: a run that is a complete subtree is one partial). With equal costs and
// power-of-two runs that is the aligned assignment.
//
// More ranks than slots: the fastest ranks own them, of equal ones the first; the others get empty
// runs. They take part in every collective and in evaluation, and are ready to take slots over in
// a later generation.
//
// Above limits of the search (slots.cc) only (1) is sought: the work is bounded for as many slots
// and ranks as there can be.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/reduction_tree.h"

namespace lockstep::coordinator {

// The cost of a rank of usual speed, and the most that is told apart.
inline constexpr uint32_t kEvenCost = 1024;
inline constexpr uint32_t kHighestCost = kEvenCost * 1024;

// One run per rank. REQUIRES: costs not empty, each in [1, kHighestCost]; slots > 0.
std::vector<SlotRun> assign_slots(const std::vector<uint32_t>& costs, uint32_t slots);
// All ranks alike. REQUIRES: ranks > 0, slots > 0.
std::vector<SlotRun> assign_slots(uint32_t ranks, uint32_t slots);

// slots x cost of the rank that needs longest. REQUIRES: as many runs as costs.
uint64_t longest_time(const std::vector<SlotRun>& runs, const std::vector<uint32_t>& costs);

// How many maximal complete subtrees of the reduction tree over [0, slots) make up `run`.
uint32_t partials_of_run(const SlotRun& run, uint32_t slots);

}  // namespace lockstep::coordinator
