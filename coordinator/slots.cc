#include "coordinator/slots.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "comm/base/check.h"

namespace lockstep::coordinator {
namespace {

// Above this the optimum is not searched for: runs of equal size are within a few partials of it.
constexpr uint32_t kSearchedSlots = 1024;

uint32_t count_subtrees(uint32_t node_begin, uint32_t node_end, const SlotRun& run) {
  if (run.end <= node_begin || node_end <= run.begin) return 0;
  if (run.begin <= node_begin && node_end <= run.end) return 1;
  const uint32_t half = std::bit_floor(node_end - node_begin - 1);
  return count_subtrees(node_begin, node_begin + half, run) +
         count_subtrees(node_begin + half, node_end, run);
}

std::vector<SlotRun> equal_runs(uint32_t ranks, uint32_t slots) {
  std::vector<SlotRun> runs(ranks);
  for (uint64_t i = 0; i < ranks; ++i) {
    runs[i].begin = static_cast<uint32_t>(i * slots / ranks);
    runs[i].end = static_cast<uint32_t>((i + 1) * slots / ranks);
  }
  return runs;
}

// best[r][p]: fewest partials when the first r ranks own exactly [0, p).
std::vector<SlotRun> searched_runs(uint32_t ranks, uint32_t slots) {
  constexpr uint32_t kImpossible = std::numeric_limits<uint32_t>::max();
  const uint32_t longest = (slots + ranks - 1) / ranks;
  std::vector<uint32_t> cost(size_t{slots + 1} * (longest + 1));
  for (uint32_t begin = 0; begin < slots; ++begin) {
    for (uint32_t size = 1; size <= longest && begin + size <= slots; ++size) {
      cost[begin * (longest + 1) + size] = partials_of_run({begin, begin + size}, slots);
    }
  }
  std::vector<std::vector<uint32_t>> best(ranks + 1, std::vector<uint32_t>(slots + 1, kImpossible));
  std::vector<std::vector<uint32_t>> taken(ranks + 1, std::vector<uint32_t>(slots + 1, 0));
  best[0][0] = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (uint32_t begin = 0; begin < slots; ++begin) {
      if (best[rank][begin] == kImpossible) continue;
      // Longer runs first: of equally good assignments the earlier ranks carry more.
      for (uint32_t size = std::min(longest, slots - begin); size > 0; --size) {
        const uint32_t sum = best[rank][begin] + cost[begin * (longest + 1) + size];
        if (sum < best[rank + 1][begin + size]) {
          best[rank + 1][begin + size] = sum;
          taken[rank + 1][begin + size] = size;
        }
      }
    }
  }
  LOCKSTEP_CHECK(best[ranks][slots] != kImpossible, "every rank can have at least one slot");
  std::vector<SlotRun> runs(ranks);
  uint32_t end = slots;
  for (uint32_t rank = ranks; rank > 0; --rank) {
    runs[rank - 1] = {end - taken[rank][end], end};
    end = runs[rank - 1].begin;
  }
  return runs;
}

}  // namespace

uint32_t partials_of_run(const SlotRun& run, uint32_t slots) {
  return count_subtrees(0, slots, run);
}

std::vector<SlotRun> assign_slots(uint32_t ranks, uint32_t slots) {
  LOCKSTEP_CHECK(ranks > 0 && slots > 0, "a generation has members and slots");
  const uint32_t owners = std::min(ranks, slots);
  std::vector<SlotRun> runs =
      slots <= kSearchedSlots ? searched_runs(owners, slots) : equal_runs(owners, slots);
  runs.resize(ranks, SlotRun{slots, slots});
  return runs;
}

}  // namespace lockstep::coordinator
