// Assigns slots to ranks: contiguous runs in ascending order, covering [0, slots) exactly.
//
// The cost of a rank is the time it needs for a slot, relative to the others. The assignment
//   (1) minimizes the longest time of a rank (its slots x its cost), because the slowest rank sets
//       the pace. Every rank still holds at least one slot. A rank that needs longer for one slot
//       than the others for all of theirs holds just one, and (1) applies to the others.
//   (2) then minimizes the partial sums that all ranks hold together, because they travel
//       (reduction_tree.h: a run that is a complete subtree is one partial). With equal costs and
//       power-of-two runs this is the aligned assignment.
//   (3) then minimizes the complete subtrees that the nodes hold, because GPUs add within a node
//       first, and a value for each subtree goes between nodes (collectives/nccl/exact_plan.h).
//
// With more ranks than slots, the fastest ranks own the slots, and the first among equals. The
// others get empty runs. They take part in every collective and in evaluation, and can take slots
// over in a later generation.
//
// Above the limits of the search (slots.cc, slot_search.cc) only (1), or (1) and (2), apply, which
// bounds the work for any number of slots and ranks.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/reduction_tree.h"

namespace lockstep::coordinator {

// The cost of a rank of usual speed, and the highest cost.
inline constexpr uint32_t kEvenCost = 1024;
inline constexpr uint32_t kHighestCost = kEvenCost * 1024;

// One run per rank. REQUIRES: costs not empty, each in [1, kHighestCost]; a node for each rank, and
// ranks of a node are neighbours; slots > 0.
std::vector<SlotRun> assign_slots(const std::vector<uint32_t>& costs,
                                  const std::vector<uint32_t>& node_of_rank, uint32_t slots);
// The same for ranks of equal cost.
std::vector<SlotRun> assign_slots(const std::vector<uint32_t>& node_of_rank, uint32_t slots);

// slots x cost of the rank with the longest time. REQUIRES: as many runs as costs.
uint64_t longest_time(const std::vector<SlotRun>& runs, const std::vector<uint32_t>& costs);

// How many maximal complete subtrees of the reduction tree over [0, slots) make up `run`.
uint32_t partials_of_run(const SlotRun& run, uint32_t slots);

}  // namespace lockstep::coordinator
