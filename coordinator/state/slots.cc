#include "coordinator/state/slots.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "comm/base/check.h"
#include "comm/base/planted_bug.h"
#include "coordinator/state/slot_search.h"

namespace lockstep::coordinator {
namespace {

// Above this the fewest partials are not searched for: even runs are within a few of them.
constexpr uint32_t kSearchedSlots = 1024;

using Costs = std::vector<uint32_t>;

uint32_t count_subtrees(uint32_t node_begin, uint32_t node_end, const SlotRun& run) {
  if (run.end <= node_begin || node_end <= run.begin) return 0;
  if (run.begin <= node_begin && node_end <= run.end) return 1;
  const uint32_t half = std::bit_floor(node_end - node_begin - 1);
  return count_subtrees(node_begin, node_begin + half, run) +
         count_subtrees(node_begin + half, node_end, run);
}

// How many slots fit into `time`, with at least `least` on every rank.
uint64_t slots_within(uint64_t time, const Costs& costs, uint64_t least) {
  uint64_t sum = 0;
  for (const uint32_t cost : costs) sum += std::max<uint64_t>(least, time / cost);
  return sum;
}

uint64_t shortest_time(const Costs& costs, uint32_t slots, uint64_t least) {
  uint64_t low = 0;
  uint64_t high = uint64_t{*std::min_element(costs.begin(), costs.end())} * slots;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (slots_within(middle, costs, least) >= slots) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The ranks that have slots, in ascending order.
std::vector<uint32_t> owners_of(const Costs& costs, uint32_t slots) {
  std::vector<uint32_t> owners(costs.size());
  std::iota(owners.begin(), owners.end(), 0u);
  if (costs.size() <= slots) return owners;
  std::stable_sort(owners.begin(), owners.end(),
                   [&](uint32_t a, uint32_t b) { return costs[a] < costs[b]; });
  const uint64_t time = shortest_time(costs, slots, 0);
  std::erase_if(owners, [&](uint32_t rank) { return costs[rank] > time; });
  owners.resize(std::min<size_t>(owners.size(), slots));
  std::sort(owners.begin(), owners.end());
  return owners;
}

// The most slots of each owner within the shortest time. Together they are fewer than `slots` and
// the number of owners, because one unit of time less is too short and takes one slot of each.
Sizes most_slots(const Costs& costs, uint32_t slots) {
  const uint64_t time = shortest_time(costs, slots, 1);
  Sizes most;
  for (const uint32_t cost : costs) {
    most.push_back(static_cast<uint32_t>(std::clamp<uint64_t>(time / cost, 1, slots)));
  }
  return most;
}

// Gives each rank one slot, and the others in proportion to what each can take besides.
Sizes even_sizes(const Sizes& most, uint32_t slots) {
  const uint64_t owners = most.size();
  const uint64_t room = std::accumulate(most.begin(), most.end(), uint64_t{0}) - owners;
  Sizes sizes;
  uint64_t before = 0;
  uint64_t given = 0;
  for (const uint32_t m : most) {
    before += m - 1;
    const uint64_t end = room == 0 ? 0 : before * (slots - owners) / room;
    sizes.push_back(static_cast<uint32_t>(1 + end - given));
    given = end;
  }
  return sizes;
}

// By node, the number of its owners.
Sizes owners_of_nodes(const std::vector<uint32_t>& owners,
                      const std::vector<uint32_t>& node_of_rank) {
  Sizes sizes;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (i == 0 || node_of_rank[owners[i]] != node_of_rank[owners[i - 1]]) sizes.push_back(0);
    ++sizes.back();
  }
  return sizes;
}

}  // namespace

uint32_t partials_of_run(const SlotRun& run, uint32_t slots) {
  return count_subtrees(0, slots, run);
}

std::vector<SlotRun> assign_slots(const std::vector<uint32_t>& costs,
                                  const std::vector<uint32_t>& node_of_rank, uint32_t slots) {
  LOCKSTEP_CHECK(!costs.empty() && slots > 0, "a generation has members and slots");
  LOCKSTEP_CHECK(node_of_rank.size() == costs.size(), "each rank is on a node");
  const std::vector<uint32_t> owners = owners_of(costs, slots);
  Costs costs_of_owners;
  for (const uint32_t rank : owners) costs_of_owners.push_back(costs[rank]);
  const Sizes most = most_slots(costs_of_owners, slots);
  const Sizes sizes = slots <= kSearchedSlots
                          ? fewest_partials(most, owners_of_nodes(owners, node_of_rank), slots)
                          : even_sizes(most, slots);
  std::vector<SlotRun> runs;
  uint32_t end = 0;
  size_t owner = 0;
  for (uint32_t rank = 0; rank < costs.size(); ++rank) {
    const bool is_owner = owner < owners.size() && owners[owner] == rank;
    const uint32_t size = is_owner ? sizes[owner++] : 0;
    const bool loses =
        LOCKSTEP_BUG(kSlotForgotten) && size > 1 && costs[rank] != costs[(rank + 1) % costs.size()];
    runs.push_back({end, end + size - (loses ? 1 : 0)});
    end += size;
  }
  return runs;
}

std::vector<SlotRun> assign_slots(const std::vector<uint32_t>& node_of_rank, uint32_t slots) {
  return assign_slots(Costs(node_of_rank.size(), kEvenCost), node_of_rank, slots);
}

uint64_t longest_time(const std::vector<SlotRun>& runs, const std::vector<uint32_t>& costs) {
  uint64_t longest = 0;
  for (size_t rank = 0; rank < runs.size(); ++rank) {
    longest = std::max(longest, uint64_t{runs[rank].end - runs[rank].begin} * costs[rank]);
  }
  return longest;
}

}  // namespace lockstep::coordinator
