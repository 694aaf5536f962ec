#include "comm/collectives/reduction_tree.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "comm/base/check.h"

namespace lockstep {
namespace {

// The first slot of the right child of a node over more than one slot.
uint32_t split(const SlotRun& node) {
  return node.begin + std::bit_floor(node.end - node.begin - 1);
}

// Calls visit(node) for every maximal subtree that lies whole in `run`, ascending.
template <typename Visit>
void for_each_subtree(const SlotRun& node, const SlotRun& run, const Visit& visit) {
  if (node.end <= run.begin || run.end <= node.begin) return;
  if (run.begin <= node.begin && node.end <= run.end) {
    visit(node);
    return;
  }
  const uint32_t middle = split(node);
  for_each_subtree({node.begin, middle}, run, visit);
  for_each_subtree({middle, node.end}, run, visit);
}

// The number of regions in use at once while a rank sums a whole subtree of n slots: it holds the
// left sum while it computes the right one.
uint32_t regions_of_subtree(uint32_t n) {
  if (n == 1) return 1;
  const uint32_t left = std::bit_floor(n - 1);
  return std::max(regions_of_subtree(left), 1 + regions_of_subtree(n - left));
}

class ScheduleBuilder {
 public:
  ScheduleBuilder(const std::vector<bool>& non_empty, MergeSchedule* schedule)
      : non_empty_(non_empty), schedule_(schedule) {}

  void add_partial(const SlotRun& node) {
    const size_t first = schedule_->work.size();
    const std::optional<uint32_t> sum = add_subtree(node);
    const uint32_t region = sum ? *sum : take_region();
    // Empty slots have no gradient. The region's control section speaks for them.
    for (size_t i = first; i < schedule_->work.size(); ++i) {
      if (schedule_->work[i].empty) schedule_->work[i].region = region;
    }
    schedule_->partials.push_back({node, region, !sum.has_value()});
  }

 private:
  // The region that holds the node's sum, or none if all of its slots are empty.
  std::optional<uint32_t> add_subtree(const SlotRun& node) {
    if (node.end - node.begin == 1) return add_slot(node.begin);
    const uint32_t middle = split(node);
    const auto left = add_subtree({node.begin, middle});
    const auto right = add_subtree({middle, node.end});
    if (!left || !right) return left ? left : right;
    schedule_->work.back().merges.push_back({*left, *right});
    in_use_[*right] = false;
    return left;
  }

  std::optional<uint32_t> add_slot(uint32_t slot) {
    SlotWork work;
    work.slot = slot;
    work.empty = !non_empty_[slot];
    if (!work.empty) work.region = take_region();
    const auto region = work.empty ? std::nullopt : std::optional<uint32_t>(work.region);
    schedule_->work.push_back(std::move(work));
    return region;
  }

  uint32_t take_region() {
    const auto free = std::find(in_use_.begin(), in_use_.end(), false);
    const auto region = static_cast<uint32_t>(free - in_use_.begin());
    if (free == in_use_.end())
      in_use_.push_back(true);
    else
      in_use_[region] = true;
    schedule_->regions = std::max(schedule_->regions, region + 1);
    return region;
  }

  const std::vector<bool>& non_empty_;
  MergeSchedule* schedule_;
  std::vector<bool> in_use_;
};

struct RankPartial {
  uint32_t rank = 0;
  FinalPartial partial;
};

// Writes the postfix sum of `node` over partials from *next on. False for an empty sum.
bool append_sum(const SlotRun& node, const std::vector<RankPartial>& partials, size_t* next,
                bool with_empty, SumProgram* program) {
  LOCKSTEP_CHECK(*next < partials.size(), "the runs do not cover all slots");
  const RankPartial& candidate = partials[*next];
  if (candidate.partial.slots == node) {
    ++*next;
    if (candidate.partial.empty && !with_empty) return false;
    program->ops.push_back(static_cast<int32_t>(program->leaves.size()));
    program->leaves.push_back({candidate.rank, candidate.partial.region});
    return true;
  }
  const uint32_t middle = split(node);
  const bool left = append_sum({node.begin, middle}, partials, next, with_empty, program);
  const bool right = append_sum({middle, node.end}, partials, next, with_empty, program);
  if (left && right) program->ops.push_back(SumProgram::kAdd);
  return left || right;
}

SumProgram make_program(const std::vector<RankPartial>& partials, uint32_t total_slots,
                        bool with_empty) {
  SumProgram program;
  size_t next = 0;
  if (total_slots > 0) append_sum({0, total_slots}, partials, &next, with_empty, &program);
  uint32_t depth = 0;
  for (const int32_t op : program.ops) {
    if (op == SumProgram::kAdd)
      --depth;
    else
      ++depth;
    program.depth = std::max(program.depth, depth);
  }
  return program;
}

// Beyond this many slots a bound replaces the exact search over all runs.
constexpr uint32_t kExactSearchSlots = 512;

}  // namespace

MergeSchedule make_merge_schedule(const SlotRun& run, uint32_t total_slots,
                                  const std::vector<bool>& non_empty) {
  LOCKSTEP_CHECK(run.begin <= run.end && run.end <= total_slots, "the run leaves the slots");
  LOCKSTEP_CHECK(non_empty.size() == total_slots, "one flag per slot");
  MergeSchedule schedule;
  if (run.begin == run.end) return schedule;
  ScheduleBuilder builder(non_empty, &schedule);
  for_each_subtree({0, total_slots}, run, [&](const SlotRun& node) { builder.add_partial(node); });
  return schedule;
}

uint32_t regions_needed(uint32_t max_run, uint32_t total_slots) {
  max_run = std::min(max_run, total_slots);
  if (max_run == 0) return 0;
  if (total_slots > kExactSearchSlots) {
    // At most two subtrees of each height remain, one on either side of the run.
    return 2 * static_cast<uint32_t>(std::bit_width(max_run)) + 1;
  }
  uint32_t most = 0;
  for (uint32_t begin = 0; begin < total_slots; ++begin) {
    const uint32_t last = std::min(begin + max_run, total_slots);
    for (uint32_t end = begin + 1; end <= last; ++end) {
      uint32_t held = 0;
      for_each_subtree({0, total_slots}, {begin, end}, [&](const SlotRun& node) {
        most = std::max(most, held + regions_of_subtree(node.end - node.begin));
        ++held;
      });
    }
  }
  return most;
}

StepMerge make_step_merge(std::span<const SlotRun> runs, uint32_t total_slots,
                          const std::vector<bool>& non_empty) {
  StepMerge merge;
  std::vector<RankPartial> partials;
  uint32_t covered = 0;
  for (uint32_t rank = 0; rank < runs.size(); ++rank) {
    LOCKSTEP_CHECK(runs[rank].begin == covered, "runs must follow one another without gaps");
    covered = runs[rank].end;
    merge.ranks.push_back(make_merge_schedule(runs[rank], total_slots, non_empty));
    for (const FinalPartial& partial : merge.ranks.back().partials) {
      partials.push_back({rank, partial});
    }
  }
  LOCKSTEP_CHECK(covered == total_slots, "runs must cover all slots");
  merge.gradients = make_program(partials, total_slots, false);
  merge.control = make_program(partials, total_slots, true);
  merge.non_empty_slots =
      static_cast<uint32_t>(std::count(non_empty.begin(), non_empty.end(), true));
  return merge;
}

}  // namespace lockstep
