// The module of the stand-in device (worker/cuda/device_module.h), as far as a training loop in
// Python needs it: memory, copies and additions run at once, as kernels there do. Devices sum as
// NCCL would, by the host's Collective: nothing is summed before a caller waits.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/collectives/device_collective.h"
#include "comm/collectives/operations_hash.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/collectives/sum_slice.h"
#include "memory.h"
#include "worker/cuda/module_entry.h"

namespace lockstep::stand_in {
namespace {

Status not_here() {
  return {Code::kInternal, "the stand-in device has no such kernel: no loop in Python needs it"};
}

// Where the values of this memory are, of the device or the host.
template <typename T>
T* values_of(T* memory) {
  void* const shadow = shadow_of(memory);
  return shadow != nullptr ? static_cast<T*>(shadow) : memory;
}

class StandInCollective final : public DeviceCollective {
 public:
  StandInCollective(GradientBuffer& buffer, DeviceGeneration of)
      : buffer_(buffer), of_(std::move(of)) {}

  uint32_t rank() const override { return of_.control->rank(); }
  uint32_t world_size() const override { return of_.control->world_size(); }
  Status begin_step(const Tag&, const StepMerge& merge) override {
    late_.clear();  // of a step that ended early
    merge_ = merge;
    operations_.begin_step(hash_of(merge));
    return Status::ok();
  }
  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    late_.push_back({tag, range});
    operations_.add(tag, range);
    return Status::ok();
  }
  Result<uint64_t> wait_for_sums() override {
    for (const auto& [tag, range] : std::exchange(late_, {}))
      LOCKSTEP_RETURN_IF_ERROR(sum(tag, range));
    return operations_.value();
  }
  const float* reduced() const override { return buffer_.result(); }
  Status broadcast(const Tag&, std::span<std::byte>, uint32_t) override { return not_here(); }
  Status all_gather(const Tag&, std::span<const std::byte>, std::span<std::byte>) override {
    return not_here();
  }
  Status barrier(const Tag&) override { return not_here(); }
  void check_next_sum(uint32_t) override {}
  std::optional<uint64_t> checked_sum() const override { return std::nullopt; }
  void abort() noexcept override { of_.control->abort(); }

 private:
  Status sum(const Tag& tag, const ElementRange& range) {
    const std::vector<Leaf>& leaves = merge_.gradients.leaves;
    std::vector<size_t> of_rank(world_size());  // its partials
    for (const Leaf& leaf : leaves) ++of_rank[leaf.rank];
    const size_t most = std::max<size_t>(1, *std::max_element(of_rank.begin(), of_rank.end()));
    std::vector<float> mine(most * range.size()), all(mine.size() * world_size());
    size_t filled = 0;
    for (const Leaf& leaf : leaves) {
      if (leaf.rank != rank()) continue;
      std::copy_n(values_of(buffer_.partial(leaf.region)) + range.begin, range.size(),
                  mine.begin() + static_cast<ptrdiff_t>(filled++ * range.size()));
    }
    LOCKSTEP_RETURN_IF_ERROR(of_.control->all_gather(tag, std::as_bytes(std::span(mine)),
                                                     std::as_writable_bytes(std::span(all))));
    std::vector<const float*> at;
    std::vector<size_t> taken(world_size());
    for (const Leaf& leaf : leaves)
      at.push_back(all.data() + (leaf.rank * most + taken[leaf.rank]++) * range.size());
    evaluate_sum(merge_.gradients, at, values_of(buffer_.result()) + range.begin, range.size());
    return Status::ok();
  }

  GradientBuffer& buffer_;
  const DeviceGeneration of_;
  StepMerge merge_;
  std::vector<std::pair<Tag, ElementRange>> late_;
  OperationsHash operations_;
};

class StandInComm final : public DeviceComm {
 public:
  explicit StandInComm(GradientBuffer& buffer) : buffer_(buffer) {}
  Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next) override {
    return std::unique_ptr<DeviceCollective>(
        std::make_unique<StandInCollective>(buffer_, std::move(next)));
  }

 private:
  GradientBuffer& buffer_;
};

class StandInModule final : public DeviceModule {
 public:
  std::string torch_device() const override { return "privateuseone:0"; }
  void* compute_stream() const override { return nullptr; }
  TorchQueue* torch_queue() const override { return nullptr; }
  void give(std::unique_ptr<TorchQueue>) override {}
  std::vector<std::string> fingerprint() const override { return {}; }
  Status check_fp8() const override { return not_here(); }
  Result<void*> allocate(size_t bytes) override {
    void* const memory = device_allocator()->raw_allocate(bytes);
    std::memset(shadow_of(memory), 0, bytes);
    return memory;
  }
  Result<void*> allocate_host(size_t bytes) override {
    return pinned_allocator()->raw_allocate(bytes);
  }
  void release(void*) override {}  // the process frees it
  uint64_t allocated_bytes() const override { return 0; }
  void pin(void* memory, size_t bytes) override { stand_in::pin(memory, bytes); }
  void unpin(void*) override {}
  Result<std::unique_ptr<DeviceComm>> open_comm(GradientBuffer& buffer,
                                                DeviceCommOptions) override {
    return std::unique_ptr<DeviceComm>(std::make_unique<StandInComm>(buffer));
  }
  std::string comm_library() const override { return "2.28.9"; }

  Status copy(DeviceLane, void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(values_of(to), values_of(from), bytes);
    return Status::ok();
  }
  Status mark(uint32_t, DeviceLane) override { return Status::ok(); }
  Status hold(DeviceLane, uint32_t) override { return Status::ok(); }
  Status wait(uint32_t) override { return Status::ok(); }
  Status follow(DeviceLane, void*) override {
    arrive(asked_for());
    return Status::ok();
  }
  Status lead(void*, uint32_t) override { return Status::ok(); }
  Status add(DeviceLane, float* into, const float* from, uint64_t elements) override {
    add_into(values_of(into), values_of(from), elements);
    return Status::ok();
  }

  Status images(const cuda::ImageWork&) override { return not_here(); }
  LayerKernels layers() override { return {}; }
  Status block_totals(const cuda::TotalsWork&) override { return not_here(); }
  Status decide(cuda::ApplyState*, const cuda::StepRule&, const cuda::BlockTotals*, uint32_t,
                const float*) override {
    return not_here();
  }
  Status update(const cuda::StepVerdict*, const cuda::UpdateChunk*, uint32_t, const UpdateBuffers&,
                const UpdateFactors&, bool) override {
    return not_here();
  }
  Status average(const cuda::StepVerdict*, const float*, uint64_t, float, float*) override {
    return not_here();
  }
  Status statistics(const cuda::StepVerdict*, const float*, uint64_t, uint32_t, float*) override {
    return not_here();
  }
};

}  // namespace
}  // namespace lockstep::stand_in

extern "C" [[gnu::visibility("default")]] lockstep::OpenedModule lockstep_open_device_module(
    uint32_t) {
  return {lockstep::kDeviceModuleVersion, new lockstep::stand_in::StandInModule, nullptr};
}
