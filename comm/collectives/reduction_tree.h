// The one place that knows the order in which slots are summed.
//
// The tree is over slots [0, V). A node over more than one slot splits at the largest power of two
// below its size. Its sum is sum(left) + sum(right). The tree leaves an empty slot out (a short
// last step has no sample for it): a node with one non-empty child is that child. So the order, and
// with it every bit, depends on V and on the number of samples of the step only.
//
// A rank owns a contiguous run of slots. It computes them in ascending order and merges partials
// like a binary counter. At the end it has the sums of the maximal complete subtrees of its run.
// MergeSchedule says which memory region each slot's gradient goes to, and which regions are merged
// after it. Every rank can compute every other rank's schedule, so peers know what lies where.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// Slots [begin, end).
struct SlotRun {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const SlotRun&) const = default;
};

// partial(dst) += partial(src), elementwise, dst on the left: sum(left) + sum(right).
struct RegionMerge {
  uint32_t dst = 0;
  uint32_t src = 0;
};

// The work of one slot of a run, in order.
struct SlotWork {
  uint32_t slot = 0;
  uint32_t region = 0;              // the region for its gradient
  bool empty = false;               // no sample: the rank computes nothing and writes no gradient
  std::vector<RegionMerge> merges;  // after the slot, in order
};

// One partial at the end of a run: the sum of slots [slots.begin, slots.end).
struct FinalPartial {
  SlotRun slots;
  uint32_t region = 0;
  bool empty = false;  // all of its slots are empty; only its control section counts
};

struct MergeSchedule {
  std::vector<SlotWork> work;
  std::vector<FinalPartial> partials;  // ascending by slot
  uint32_t regions = 0;                // the number of regions that it uses
};

// REQUIRES: run within [0, total_slots); non_empty.size() == total_slots.
MergeSchedule make_merge_schedule(const SlotRun& run, uint32_t total_slots,
                                  const std::vector<bool>& non_empty);

// The largest number of regions that a run of at most `max_run` slots out of `total_slots` can
// need.
uint32_t regions_needed(uint32_t max_run, uint32_t total_slots);

// One leaf of the sum over ranks: region `region` of rank `rank`.
struct Leaf {
  uint32_t rank = 0;
  uint32_t region = 0;
};

// A sum as a postfix program over leaves: op >= 0 pushes leaf `op`, kAdd replaces the two topmost
// values by left + right. An empty program (no sample at all) gives zeros.
struct SumProgram {
  static constexpr int32_t kAdd = -1;
  std::vector<Leaf> leaves;
  std::vector<int32_t> ops;
  uint32_t depth = 0;  // the largest number of values on the stack
};

// Everything that ranks must agree on for one step.
struct StepMerge {
  std::vector<MergeSchedule> ranks;  // by rank
  SumProgram gradients;              // leaves out empty partials; for gradients and statistics
  SumProgram control;                // all partials
  uint32_t non_empty_slots = 0;
};

// `runs` by rank. They cover [0, total_slots) in ascending order without gaps. A run may be empty
// (begin == end) if there are more ranks than slots.
StepMerge make_step_merge(std::span<const SlotRun> runs, uint32_t total_slots,
                          const std::vector<bool>& non_empty);

// Evaluates `program` over n floats: out[i] = tree sum of leaves[k][i]. `out` may be leaves[0]
// itself, but no other leaf. Works in tiles that stay in the first-level cache.
void evaluate_sum(const SumProgram& program, std::span<const float* const> leaves, float* out,
                  uint64_t n);

// dst[i] += src[i]: the merge inside one rank, with the same addition as evaluate_sum's.
void add_into(float* dst, const float* src, uint64_t n);

}  // namespace lockstep
