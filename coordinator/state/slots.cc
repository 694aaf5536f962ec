#include "coordinator/state/slots.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "comm/base/check.h"
#include "comm/base/planted_bug.h"

namespace lockstep::coordinator {
namespace {

// Above this the fewest partials are not searched for: even runs are within a few of them.
constexpr uint32_t kSearchedSlots = 1024;

using Costs = std::vector<uint32_t>;
using Sizes = std::vector<uint32_t>;  // in slots, by owner

uint32_t count_subtrees(uint32_t node_begin, uint32_t node_end, const SlotRun& run) {
  if (run.end <= node_begin || node_end <= run.begin) return 0;
  if (run.begin <= node_begin && node_end <= run.end) return 1;
  const uint32_t half = std::bit_floor(node_end - node_begin - 1);
  return count_subtrees(node_begin, node_begin + half, run) +
         count_subtrees(node_begin + half, node_end, run);
}

// So many slots fit into `time`, with at least `least` on every rank.
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

// Who has slots, in ascending order.
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

// One slot for each, the others in proportion to what each can take besides.
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

// The search over who ends where: best(r, p) is the fewest partials when the first r owners hold
// exactly [0, p).
class PartialSearch {
 public:
  PartialSearch(const Sizes& most, uint32_t slots)
      : most_(most),
        slots_(slots),
        longest_(*std::max_element(most.begin(), most.end())),
        partials_(size_t{slots + 1} * (longest_ + 1), 0),
        taken_(most.size() + 1, Sizes(slots + 1, 0)) {}

  Sizes sizes() {
    std::vector<uint32_t> best(slots_ + 1, kImpossible);
    best[0] = 0;
    for (size_t owner = 0; owner < most_.size(); ++owner) best = with_next(best, owner);
    LOCKSTEP_CHECK(best[slots_] != kImpossible, "every owner can have at least one slot");
    Sizes sizes(most_.size());
    uint32_t end = slots_;
    for (size_t owner = most_.size(); owner > 0; --owner) {
      sizes[owner - 1] = taken_[owner][end];
      end -= sizes[owner - 1];
    }
    return sizes;
  }

 private:
  static constexpr uint32_t kImpossible = std::numeric_limits<uint32_t>::max();

  std::vector<uint32_t> with_next(const std::vector<uint32_t>& best, size_t owner) {
    std::vector<uint32_t> next(slots_ + 1, kImpossible);
    for (uint32_t begin = 0; begin < slots_; ++begin) {
      if (best[begin] == kImpossible) continue;
      // Longer runs first: of equally good assignments the earlier ranks carry more.
      for (uint32_t size = std::min(most_[owner], slots_ - begin); size > 0; --size) {
        const uint32_t sum = best[begin] + partials(begin, size);
        if (sum >= next[begin + size]) continue;
        next[begin + size] = sum;
        taken_[owner + 1][begin + size] = size;
      }
    }
    return next;
  }

  uint32_t partials(uint32_t begin, uint32_t size) {
    uint32_t& known = partials_[size_t{begin} * (longest_ + 1) + size];
    if (known == 0) known = partials_of_run({begin, begin + size}, slots_);
    return known;
  }

  const Sizes& most_;
  const uint32_t slots_;
  const uint32_t longest_;
  std::vector<uint32_t> partials_;  // by begin and size; 0: not counted yet
  std::vector<Sizes> taken_;        // by owners and end: how many the last of them holds
};

}  // namespace

uint32_t partials_of_run(const SlotRun& run, uint32_t slots) {
  return count_subtrees(0, slots, run);
}

std::vector<SlotRun> assign_slots(const std::vector<uint32_t>& costs, uint32_t slots) {
  LOCKSTEP_CHECK(!costs.empty() && slots > 0, "a generation has members and slots");
  const std::vector<uint32_t> owners = owners_of(costs, slots);
  Costs costs_of_owners;
  for (const uint32_t rank : owners) costs_of_owners.push_back(costs[rank]);
  const Sizes most = most_slots(costs_of_owners, slots);
  const Sizes sizes =
      slots <= kSearchedSlots ? PartialSearch(most, slots).sizes() : even_sizes(most, slots);
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

std::vector<SlotRun> assign_slots(uint32_t ranks, uint32_t slots) {
  return assign_slots(Costs(ranks, kEvenCost), slots);
}

uint64_t longest_time(const std::vector<SlotRun>& runs, const std::vector<uint32_t>& costs) {
  uint64_t longest = 0;
  for (size_t rank = 0; rank < runs.size(); ++rank) {
    longest = std::max(longest, uint64_t{runs[rank].end - runs[rank].begin} * costs[rank]);
  }
  return longest;
}

}  // namespace lockstep::coordinator
