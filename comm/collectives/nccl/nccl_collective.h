// The Collective of GPU workers: gradients over NCCL, small operations over the host's Collective.
//
// all_reduce() only enqueues, on the DeviceQueue's stream. reduced()[range] is valid for work
// enqueued there later. begin_step() makes the compute stream wait until it may overwrite the
// partials (C3). wait_for_sums() polls, because a wait of CUDA's own would not end when the
// generation is closed. It gives the hash of the step's operations, which the ranks compare when
// they agree to the step (C4, operations_hash.h).
//
//   exact  as exact_plan.h says: the tree's bits
//   fast   adds own partials, then ncclAllReduce with ncclSum: in any order, never ncclAvg, which
//          turns NVLS off
//
// abort() only ends the host's waits. NcclContext ends the work on the device, at the next
// connect() or with the worker.
//
// Thread-safety: as Collective says.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "comm/collectives/device_collective.h"
#include "comm/collectives/nccl/call_watch.h"
#include "comm/collectives/nccl/communicator.h"
#include "comm/collectives/nccl/device_queue.h"
#include "comm/collectives/nccl/exact_plan.h"
#include "comm/collectives/operations_hash.h"

namespace lockstep::nccl {

enum class Numerics { kExact, kFast };

// True if a generation is over: aborted here, or closed by the session. The waits in the
// communicator share it.
struct Closed {
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
  std::function<bool()> by_session = [] { return false; };
  bool operator()() const { return aborted->load() || by_session(); }
};

struct NcclParts {
  Generation generation = 0;
  Numerics numerics = Numerics::kExact;
  std::vector<uint32_t> node_of_rank;
  // The host's Collective, of the same generation and ranks. It outlives this one.
  Collective* control = nullptr;
  std::shared_ptr<Communicator> communicator;
  Closed closed;
  const Clock* clock = nullptr;                  // outlives the Collective
  std::function<void(int64_t waited_ns)> pause;  // between two looks
  NcclApi api;
  DeviceQueue* queue = nullptr;      // outlives the Collective
  GradientBuffer* buffer = nullptr;  // device memory; outlives the Collective
  std::shared_ptr<CallWatch> watch;
};

class NcclCollective final : public DeviceCollective {
 public:
  explicit NcclCollective(NcclParts parts);

  uint32_t rank() const override { return parts_.control->rank(); }
  uint32_t world_size() const override { return parts_.control->world_size(); }
  Status begin_step(const Tag& tag, const StepMerge& merge) override;
  Status all_reduce(const Tag& tag, const ElementRange& range) override;
  const float* reduced() const override { return reduced_; }
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override;
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override;
  Status barrier(const Tag& tag) override;
  // Others cannot add a slice again: their copies of the partials are gone by then.
  void check_next_sum(uint32_t) override {}
  std::optional<uint64_t> checked_sum() const override { return std::nullopt; }
  Result<uint64_t> wait_for_sums() override;
  void abort() noexcept override;
  int64_t broken_rank() const override { return parts_.control->broken_rank(); }

 private:
  Status check(const Tag& tag) const;
  Status check_health() const;
  Status finish(Status status);
  Status reduce_exact(const ElementRange& range);
  Status reduce_fast(const ElementRange& range);
  Status sum_own(const ElementRange& range);
  Status exchange(const ExchangePhase& phase, float* stage);  // one group
  Status add(const PlannedSum& planned, float* stage);
  Status enqueue_sum(std::span<const int32_t> ops, std::span<const float* const> leaves, float* out,
                     uint64_t elements);
  float* at(const BufferPlace& place, float* stage) const;

  const NcclParts parts_;
  StepMerge merge_;
  OperationsHash operations_;
  Step step_ = 0;
  bool alone_ = false;  // one rank, one partial: nothing to add
  const float* reduced_ = nullptr;
};

}  // namespace lockstep::nccl
