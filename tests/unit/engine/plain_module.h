// A device without a device: plain memory that nothing else uses, and lanes that are as late as
// they may be. A copy runs only when a caller waits for it or holds compute for it; the host gets
// the bytes that were there when the copy was enqueued. Streams of others are as late. So a copy or
// a wait that is forgotten shows as other bits, and a kernel that is given the host's memory fails
// the test. Memory runs out on demand, and leaves an error, as CUDA does: the thread's next kernel
// reports it as its own.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/cuda/host_layers.h"
#include "worker/cuda/device_module.h"
#include "worker/cuda/fp8_support.h"

namespace lockstep::testing {

class PlainModule;

// Layers of that device. The loss of floats is the CPU's, to the bit: models without kernels of
// their own train to its bits.
template <typename T>
class PlainLayers final : public HostLayers<T> {
 public:
  explicit PlainLayers(const PlainModule& of) : of_(of) {}
  Status cross_entropy(const CrossEntropy<T>& work, uint32_t rows) override;
  Status dropout(const cuda::DropoutWork<T>& work) override;

 private:
  const PlainModule& of_;
};

class PlainModule final : public DeviceModule {
 public:
  template <typename T>
  friend class PlainLayers;

  std::string torch_device() const override { return "cpu"; }
  void* compute_stream() const override { return nullptr; }
  TorchQueue* torch_queue() const override { return torch_queue_.get(); }
  void give(std::unique_ptr<TorchQueue> queue) override { torch_queue_ = std::move(queue); }
  std::vector<std::string> fingerprint() const override { return {"device=plain"}; }
  GpuFacts facts{.name = "NVIDIA H100", .major = 9};
  Status check_fp8() const override { return lockstep::check_fp8(facts, /*index=*/0); }
  Result<void*> allocate(size_t bytes) override;
  Result<void*> allocate_host(size_t bytes) override;
  Result<void*> allocate_for_peers(size_t bytes) override {
    ++allocated_for_peers;
    return allocate(bytes);
  }
  int allocated_for_peers = 0;
  void release(void* memory) override;
  uint64_t allocated_bytes() const override;
  void pin(void* memory, size_t bytes) override;
  void unpin(void* memory) override;
  // Most tests connect devices themselves (loopback_world.h).
  Result<std::unique_ptr<DeviceComm>> open_comm(GradientBuffer& buffer,
                                                DeviceCommOptions options) override {
    if (!opens) return Status(Code::kConfig, "a device without a network");
    return opens(buffer, std::move(options));
  }
  std::function<Result<std::unique_ptr<DeviceComm>>(GradientBuffer&, DeviceCommOptions)> opens;
  std::string nccl_version;
  std::string comm_library() const override { return nccl_version; }
  Status copy(DeviceLane lane, void* to, const void* from, size_t bytes) override;
  Status mark(uint32_t mark, DeviceLane lane) override;
  Status hold(DeviceLane lane, uint32_t mark) override;
  Status wait(uint32_t mark) override;
  Status follow(DeviceLane lane, void* stream) override;
  Status lead(void* stream, uint32_t mark) override;
  Status images(const cuda::ImageWork& work) override;
  LayerKernels layers() override { return {&of_floats, &of_bf16, &fp8}; }
  Status add(DeviceLane lane, float* into, const float* from, uint64_t elements) override;
  Status block_totals(const cuda::TotalsWork& work) override;
  Status decide(cuda::ApplyState* state, const cuda::StepRule& rule,
                const cuda::BlockTotals* totals, uint32_t blocks, const float* control) override;
  Status update(const cuda::StepVerdict* verdict, const cuda::UpdateChunk* chunks, uint32_t count,
                const UpdateBuffers& buffers, const UpdateFactors& factors,
                bool keeps_zeros) override;
  Status average(const cuda::StepVerdict* verdict, const float* params, uint64_t n, float rate,
                 float* average) override;
  Status statistics(const cuda::StepVerdict* verdict, const float* sums, uint64_t n, uint32_t slots,
                    float* statistics) override;

  PlainLayers<float> of_floats{*this};
  PlainLayers<cuda::Bf16> of_bf16{*this};
  HostFp8 fp8;
  void expect_mine(const void* memory) const;  // a kernel is given it

  // Streams of others, as late as the lanes. Work on one runs when a lane that follows the stream
  // has to wait for it, and at last in finish_stream().
  void* make_stream();
  void enqueue(void* stream, std::function<void()> work);
  void finish_stream(void* stream);
  // kCompute is as late as the other lanes. For engines that compute on streams: kernels, and what
  // LibTorch computes, run at once.
  bool has_late_compute = false;

  // The next so many copies from the device fail.
  uint32_t copies_to_fail = 0;
  uint64_t largest_slow_copy = 0;  // bytes, from the device to memory that is not pinned
  uint64_t largest_copy = 0;       // bytes, between host and device either way, but for batches
  uint64_t copied_gradients = 0;   // bytes, from one place of the device to another
  // A slow way to the device: the time of each copy of the lane kInputs that has more bytes than
  // SlotValues; and the number of these copies.
  std::chrono::milliseconds samples_take{0};
  uint32_t sample_copies = 0;
  uint32_t batches_before_apply = 0;  // sample_copies at the last decide()
  uint32_t value_copies = 0;          // of that lane, the others
  size_t pinned() const { return pinned_.size(); }
  std::vector<uint32_t> gradients_held;  // marks for which kGradients was held, in order

  // The bytes that it still gives, of the device and the host together; nothing: any number.
  // LibTorch has cached some more of these, which it gives back when it is asked
  // (plain_recorder.h).
  std::optional<uint64_t> bytes_left;
  uint64_t cached_by_torch = 0;

  // The next mark of a recorded bucket throws.
  bool throws_in_backward = false;

  // While this is set, the module writes down every call and its arguments here.
  std::vector<std::string>* told = nullptr;
  bool is_mine(const void* memory) const;

  // Everything that work changes: memory, what is late, marks.
  struct Snapshot {
    std::vector<std::vector<std::byte>> memory;
    std::array<std::deque<std::function<void()>>, 3> late;
    std::array<uint64_t, 3> enqueued = {};
    std::map<uint32_t, std::pair<DeviceLane, uint64_t>> marks;
  };
  Snapshot snapshot() const;
  void restore(const Snapshot& snapshot);

 private:
  struct Place {
    DeviceLane lane = DeviceLane::kCompute;
    uint64_t tasks = 0;  // of the lane that are before it
  };
  struct Lane {
    std::deque<std::function<void()>> late;
    uint64_t enqueued = 0;
  };
  struct alignas(256) Line {
    std::byte of[256] = {};
  };
  using Memory = std::unique_ptr<Line[]>;

  static Memory make(size_t bytes);
  Result<void*> ask(size_t bytes, bool is_of_device);
  Result<void*> ask_once(size_t bytes, bool is_of_device);
  // Returns what the launch of a kernel reports.
  Status launched() const;
  bool is_of_device(const void* memory) const;
  static bool is_in(const std::map<const std::byte*, size_t>& ranges, const void* memory);
  template <typename... Words>
  void tell(const Words&... words) const;
  void run_to(const Place& place);
  static void run(Lane& late, uint64_t tasks);
  void push(DeviceLane lane, std::function<void()> task);
  Lane& lane(DeviceLane lane) { return lanes_[static_cast<size_t>(lane)]; }

  mutable std::mutex mutex_;
  std::map<const std::byte*, size_t> device_;  // begin, bytes
  std::vector<Memory> memory_;
  std::vector<size_t> bytes_;                  // of memory_
  std::map<const std::byte*, size_t> host_;    // of allocate_host(): begin, bytes
  std::map<const std::byte*, size_t> pinned_;  // begin, bytes
  Lane lanes_[3];
  std::deque<Lane> streams_;  // their addresses are the handles
  std::map<uint32_t, Place> marks_;
  std::unique_ptr<TorchQueue> torch_queue_;
  mutable std::set<std::thread::id> left_errors_;  // the threads whose last error is not taken yet
};

template <typename... Words>
void PlainModule::tell(const Words&... words) const {
  if (told == nullptr) return;
  std::ostringstream line;
  ((line << ' ' << words), ...);
  told->push_back(line.str());
}

}  // namespace lockstep::testing
