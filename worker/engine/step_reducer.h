// Sums the gradients of one step. The reducer merges this rank's slots as the schedule says, and
// reduces bucket by bucket. A bucket leaves as soon as the last slot has completed it and all
// buckets before it have left.
//
//   begin_step ─ slot_done (every slot but the last, merged whole)
//              ─ last_slot_begins ─ tensor_ready ... (buckets leave, merged one by one) ─ finish
//
// INVARIANTS
//  R1 The reducer writes partials only after open() of the step, because peers may still be
//     reading.
//  R2 Buckets leave in the same order on every rank (bucket_order.h), in whatever order gradients
//     get ready.
//  R3 The last bucket holds statistics and control. It leaves only in finish(), so votes that come
//     during the step are still in time.
//  R4 With a GradientTransfer, a bucket sets out as soon as it is complete. The reducer merges
//     nothing of a bucket before the bucket has arrived in the region.
//  R5 With DeviceSums, gradients stay on the device: the rank is alone, or buckets go through a
//     DeviceCollective. Only the control section goes through the host's Collective. Nothing uses a
//     sum before the host has seen that all sums are there.
//  R6 With a DeviceCollective, the control section is this rank's agreement to the step: the rank
//     reduces it only after all its sums are there, and a step is applied only after every rank's
//     control section has come. A rank that aborts its device's work while sums are missing has
//     not agreed, and never will. So its peers apply no sums of this step, whatever they hold
//     (comm/collectives/nccl/README.md, "Agreeing, closing, aborting"). The tag carries the hash of
//     the device's operations, so ranks in different operations get an error (C4).
//
// Thread-safety: the training thread only. Reductions run on the lane if there is one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/device_collective.h"
#include "worker/engine/bucket_order.h"
#include "worker/engine/comm_lane.h"
#include "worker/engine/device_sums.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/gradient_transfer.h"
#include "worker/engine/step_sums.h"

namespace lockstep {

class FlightRecord;
class TraceLog;
enum class FlightOperation : uint8_t;

// The votes of a rank in the last bucket.
struct Votes {
  bool stop = false;
  bool change = false;  // this rank knows of the planned change
};

// How gradients come from where backward writes them to where the ranks sum them. Both null:
// backward writes into the Collective's regions.
struct GradientPath {
  GradientTransfer* transfer = nullptr;
  DeviceSums* sums = nullptr;           // takes precedence over `transfer`
  DeviceCollective* devices = nullptr;  // used with `sums`; null: the rank is alone
};

class StepReducer {
 public:
  // All arguments outlive the reducer. `bounds` as in wire::BucketPlan; the last one is
  // layout.buffer.elements. REQUIRES: DeviceSums without a DeviceCollective only in a world of one
  // rank.
  StepReducer(const FlatLayout& layout, GradientBuffer& buffer, Collective& collective,
              Generation generation, std::vector<uint64_t> bounds, std::atomic<uint32_t>& progress,
              const GradientPath& path = {});
  ~StepReducer();

  // Notes the sums of all steps in `record`, which outlives the reducer; null: notes nothing.
  void note_in(FlightRecord* record) { flight_ = record; }

  void begin_step(Step step, const StepMerge& merge);

  // Records the buckets of this step in `log`; null: records nothing. Call after begin_step().
  void trace(TraceLog* log) { trace_ = log; }

  // Checks the sum of `bucket`, in the slice of rank `owner`. Call after begin_step().
  void check_sum(uint32_t bucket, uint32_t owner) { check_ = {bucket, owner}; }
  uint32_t buckets() const { return static_cast<uint32_t>(bounds_.size() - 1); }

  // Waits until peers have read the sums of the previous step (C3). Later calls in a step do
  // nothing.
  Status open();

  // Where the gradient of a slot goes. REQUIRES: open().
  float* region(const SlotWork& work) { return buffer_.partial(work.region); }
  // Where the gradient goes on the device; null: to region(). Control goes to region() in any case.
  float* region_on_device(const SlotWork& work) {
    return device_sums_ == nullptr ? nullptr : device_sums_->partial(work.region);
  }
  bool is_last(const SlotWork& work) const { return work.slot == last_slot_; }

  // Where the slot would be merged first: an earlier partial, to which the caller may add its
  // gradients at once, whole, instead of writing them to region(). Statistics and control go to
  // region() in any case. Null: the slot is not merged into another, or not on the host. Once it
  // was asked for, the gradients have to go there. REQUIRES: open().
  float* sum_to_add_to(const SlotWork& work);

  // The gradient of the parameter is in the last slot's region. Call it for the last slot only.
  void tensor_ready(uint32_t parameter);

  // Everything of this slot, empty or not, is in its region. Slots before the last one are merged
  // at once. Call it for every slot of the schedule.
  Status slot_done(const SlotWork& work);

  // Reduces the buckets that have not left yet. Blocks until all sums are there, and in a
  // generation's first step until the ranks agree on the order of buckets. Calls `votes` when the
  // last bucket leaves (with a DeviceCollective: when the control section leaves); if an earlier
  // bucket fails, the last bucket does not leave.
  Status finish(const std::function<Votes()>& votes);

  // The step's sums. REQUIRES: finish() has returned ok.
  const float* sums() const { return collective_.reduced(); }
  StepSums step_sums() const;

  // The result of this rank's check_sum(); nothing if it took no part. REQUIRES: as for sums().
  std::optional<uint64_t> checked_sum() const { return collective_.checked_sum(); }

 private:
  struct SumCheck {
    uint32_t bucket = 0;
    uint32_t owner = 0;
  };
  void launch_ready();
  void send_ready();
  void start_transfer(uint32_t region, const ElementRange& range, uint32_t ticket);
  void merge(const std::vector<RegionMerge>& merges, const ElementRange& range);
  void merge_slot(const std::vector<RegionMerge>& merges, const ElementRange& range);
  ElementRange control() const { return {layout_.buffer.statistics, layout_.buffer.elements}; }
  Status merge_on_device(const std::vector<RegionMerge>& merges, const ElementRange& range);
  Status sum_on_device(uint32_t position);
  Status finish_on_device(const std::function<Votes()>& votes);
  Result<uint64_t> wait_for_devices();
  ElementRange range_of(uint32_t bucket) const { return {bounds_[bucket], bounds_[bucket + 1]}; }
  bool is_complete(uint32_t position) const { return missing_[order_.at(position)] == 0; }
  Status merge_and_reduce(uint32_t position, const std::function<void()>& merged);
  Status reduce(Collective& collective, uint32_t position, const ElementRange& range,
                uint64_t device_operations = 0);
  void complete_control(const Votes& votes);
  void note_queued(FlightOperation operation, uint32_t position);
  void note_running(uint32_t position);
  Status note_end(uint32_t position, Status status);

  const FlatLayout& layout_;
  GradientBuffer& buffer_;
  Collective& collective_;
  const Generation generation_;
  const std::vector<uint64_t> bounds_;
  std::vector<uint32_t> bucket_of_;  // by parameter
  std::vector<uint32_t> tensors_in_bucket_;
  BucketOrder order_;
  std::atomic<uint32_t>& progress_;
  DeviceSums* const device_sums_;
  DeviceCollective* const devices_;
  GradientTransfer* const transfer_;
  std::unique_ptr<CommLane> lane_;  // only with peers and more than one bucket

  // The state of the step in progress.
  Step step_ = 0;
  const StepMerge* merge_ = nullptr;
  const MergeSchedule* schedule_ = nullptr;
  bool opened_ = false;
  int64_t last_slot_ = -1;                 // the last slot that is not empty; -1: all are
  uint32_t last_region_ = 0;               // its region
  std::vector<RegionMerge> final_merges_;  // the merges that need the last slot
  bool is_added_ = false;                  // sum_to_add_to() was called for the slot in progress
  std::vector<uint32_t> missing_;          // by bucket: missing gradients of the last slot
  uint32_t sent_ = 0;      // place in the order; transfers have set out for all before it
  uint32_t launched_ = 0;  // place in the order; all buckets before it have left
  Status launch_error_;    // of tensor_ready()
  std::optional<SumCheck> check_;
  std::vector<uint64_t> flights_;  // by place in the order: number in the record; 0: none
  TraceLog* trace_ = nullptr;
  FlightRecord* flight_ = nullptr;
};

}  // namespace lockstep
