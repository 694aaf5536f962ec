// The one place that knows in which order slots are summed.
//
// The tree over slots [0, V): a node over more than one slot is split at the largest power of two
// below its size; its sum is sum(left) + sum(right). An empty slot (a short last step has no sample
// for it) is left out: a node with one non-empty child is that child. So the order, and with it
// every bit, depends on V and on the number of samples of the step only (DESIGN, section 3).
//
// A rank owns a contiguous run of slots. It computes them in ascending order and merges partials
// like a binary counter; what remains are the sums of the maximal complete subtrees of its run.
// MergeSchedule says in which memory region each slot's gradient goes and which regions are merged
// after it; every rank can compute every other rank's schedule, so peers know what lies where.
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

// What to do with one slot of a run, in order.
struct SlotWork {
  uint32_t slot = 0;
  uint32_t region = 0;              // where its gradient goes
  bool empty = false;               // no sample: nothing is computed, no gradient is written
  std::vector<RegionMerge> merges;  // after it, in order
};

// One partial that remains at the end of a run: the sum of slots [slots.begin, slots.end).
struct FinalPartial {
  SlotRun slots;
  uint32_t region = 0;
  bool empty = false;  // all of its slots are empty; only its control section counts
};

struct MergeSchedule {
  std::vector<SlotWork> work;
  std::vector<FinalPartial> partials;  // ascending by slot
  uint32_t regions = 0;                // how many regions it uses
};

// REQUIRES: run within [0, total_slots); non_empty.size() == total_slots.
MergeSchedule make_merge_schedule(const SlotRun& run, uint32_t total_slots,
                                  const std::vector<bool>& non_empty);

// The most regions any run of at most `max_run` slots out of `total_slots` can need.
uint32_t regions_needed(uint32_t max_run, uint32_t total_slots);

// One leaf of the sum over ranks: region `region` of rank `rank`.
struct Leaf {
  uint32_t rank = 0;
  uint32_t region = 0;
};

// A sum as postfix program over leaves: op >= 0 pushes leaf `op`, kAdd replaces the two topmost
// values by left + right. An empty program (no sample at all) yields zeros.
struct SumProgram {
  static constexpr int32_t kAdd = -1;
  std::vector<Leaf> leaves;
  std::vector<int32_t> ops;
  uint32_t depth = 0;  // most values on the stack at once
};

// Everything that ranks must agree on for one step.
struct StepMerge {
  std::vector<MergeSchedule> ranks;  // by rank
  SumProgram gradients;              // leaves out empty partials; for gradients and statistics
  SumProgram control;                // all partials
  uint32_t non_empty_slots = 0;
};

// `runs` by rank, covering [0, total_slots) in ascending order without gaps; a run may be empty
// (begin == end) when there are more ranks than slots.
StepMerge make_step_merge(std::span<const SlotRun> runs, uint32_t total_slots,
                          const std::vector<bool>& non_empty);

// Evaluates `program` over n floats: out[i] = tree sum of leaves[k][i]. `out` may be leaves[0]
// itself, no other leaf. Works in tiles that stay in the first-level cache.
void evaluate_sum(const SumProgram& program, std::span<const float* const> leaves, float* out,
                  uint64_t n);

// dst[i] += src[i]: the merge inside one rank, the same addition as evaluate_sum's.
void add_into(float* dst, const float* src, uint64_t n);

}  // namespace lockstep
