// The joint operations of the workers of one generation. A Collective is fixed to a generation: its
// members, ranks and slot runs never change. A new generation gets a new Collective.
//
// comm/ knows raw pointers, never tensors. All elements are fp32.
//
// THE GRADIENT BUFFER. Every rank owns one GradientBuffer for the whole run. It has `regions()`
// partial sums and one result, each of `elements()` floats with the same layout on every rank:
//
//     [0, gradients)            summed over non-empty slots, along the reduction tree
//     [gradients, statistics)   buffers such as BatchNorm's; summed in the same way
//     [statistics, elements)    control: loss, counters, votes; summed over all partials, so that
//                               a rank whose slots are all empty still has its say
//
// A rank merges its slots into at most `regions()` partials, as MergeSchedule says
// (reduction_tree.h). The Collective adds the partials of all ranks along the same tree.
//
// INVARIANTS
//
//  C1 The result depends on the slots' values only: not on ranks, backends, buckets, slices or
//     time.
//
//  C2 No rank writes another rank's memory. Ranks pull results.
//
//  C3 A rank rewrites a published range only after begin_step() has returned ok for a later step,
//     which waits until every peer has counted the range as read; or in a later generation.
//
//  C4 Every operation carries a Tag. A mismatch between ranks is an error (kInternal), never a
//     wait.
//
//  C5 After abort() every blocked and every later call returns kAborted, in about a millisecond.
//
// THREAD-SAFETY: all operations of one Collective from one thread at a time (the engine's
// communication lane), abort() from any thread at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/reduction_tree.h"

namespace lockstep {

struct Tag {
  Generation generation = 0;
  Step step = 0;
  Phase phase = Phase::kTrain;
  uint32_t bucket = 0;
  uint64_t bytes = 0;
  uint64_t device_operations = 0;  // what devices did before (operations_hash.h); 0: nothing
  bool operator==(const Tag&) const = default;
};

// Half-open range of elements of the flat buffer.
struct ElementRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
};

struct BufferLayout {
  uint64_t gradients = 0;   // end of the gradient section, a multiple of kCutElements
  uint64_t statistics = 0;  // end of the statistics section, a multiple of kCutElements
  uint64_t elements = 0;    // end of the control section, a multiple of kCutElements
};

// All cuts of sections, buckets and slices are multiples of this many floats, because vectorised
// loops treat the tail of a tensor differently.
inline constexpr uint64_t kCutElements = 16;

// One rank's gradient memory for the run. Each backend makes its own: shared memory or plain.
class GradientBuffer {
 public:
  virtual ~GradientBuffer() = default;
  virtual const BufferLayout& layout() const = 0;
  virtual uint32_t regions() const = 0;
  // `layout().elements` floats each, 256-byte aligned. Only the owner writes them.
  virtual float* partial(uint32_t region) = 0;
  virtual float* result() = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t world_size() const = 0;

  // Returns when this rank may overwrite its partials of earlier steps (C3). `merge` is every
  // rank's schedule for the step. It is the same on all ranks, because it depends on the slot map
  // and the number of samples only (make_step_merge).
  virtual Status begin_step(const Tag& tag, const StepMerge& merge) = 0;

  // Publishes this rank's partials in `range`, and sums the partials of all ranks along the tree.
  // Afterwards reduced()[range] holds the sum. Every rank calls it for the same ranges in the same
  // order. REQUIRES: begin_step() of this step; `range` cut at multiples of kCutElements.
  virtual Status all_reduce(const Tag& tag, const ElementRange& range) = 0;

  // The sums of the current step, `layout().elements` floats. Only reduced ranges are valid, and
  // only until the next begin_step(). With one rank and one partial it is that partial.
  virtual const float* reduced() const = 0;

  // From the next begin_step() on, sums go to `sums`, `layout().elements` floats that no peer
  // reads: the caller may change what is reduced() there. It outlives the Collective. A backend
  // that cannot sum there ignores it, and reduced() is elsewhere.
  virtual void sum_into(float* sums) { (void)sums; }

  // Sends root's `data` to all ranks.
  virtual Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) = 0;

  // all[r * mine.size() ...] = rank r's `mine`. REQUIRES: all.size() == mine.size() * world_size().
  virtual Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                            std::span<std::byte> all) = 0;

  virtual Status barrier(const Tag& tag) = 0;

  // Makes the next all_reduce() check one slice of its sum. `owner`, the rank that sums the slice,
  // and the checking ranks (cross_check.h) each hash their own sum. Each rank may call it or not;
  // no rank waits for it.
  virtual void check_next_sum(uint32_t owner) = 0;
  // The hash of the last checked slice. Nothing if this rank has no part in the check, or cannot
  // read the partials again.
  virtual std::optional<uint64_t> checked_sum() const = 0;

  virtual void abort() noexcept = 0;

  // The rank whose loss this rank saw, for the report to the coordinator; -1: none. Any thread.
  virtual int64_t broken_rank() const { return -1; }
};

}  // namespace lockstep
