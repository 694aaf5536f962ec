#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>

#include "comm/base/check.h"
#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/cuda_comm.h"
#include "worker/cuda/fp8_support.h"
#include "worker/cuda/gpu_fingerprint.h"
#include "worker/cuda/kernels/apply_launch.h"
#include "worker/cuda/kernels/cuda_layers.h"
#include "worker/cuda/kernels/layer_launch.h"
#include "worker/cuda/kernels/merge_launch.h"
#include "worker/cuda/make_room.h"
#include "worker/cuda/module_entry.h"
#include "worker/cuda/pinned_memory.h"

namespace lockstep {
namespace {

using cuda::cuda_status;

constexpr size_t kLanes = 3;
// LibTorch's CUDA library has brought it.
constexpr char kNcclLibrary[] = "libnccl.so.2";
// Part of the fingerprint. Raise this when a kernel changes the order or the arithmetic of a sum.
constexpr int kKernelBits = 2;

class CudaModule final : public DeviceModule {
 public:
  static Result<std::unique_ptr<CudaModule>> create(uint32_t local_rank) {
    std::unique_ptr<CudaModule> module(new CudaModule);
    LOCKSTEP_RETURN_IF_ERROR(module->init(local_rank));
    return module;
  }
  ~CudaModule() override;

  std::string torch_device() const override { return "cuda:" + std::to_string(device_); }
  void* compute_stream() const override { return stream(DeviceLane::kCompute); }
  TorchQueue* torch_queue() const override { return torch_queue_.get(); }
  void give(std::unique_ptr<TorchQueue> queue) override { torch_queue_ = std::move(queue); }
  std::vector<std::string> fingerprint() const override { return gpu_fingerprint(facts()); }
  Status check_fp8() const override { return lockstep::check_fp8(facts(), device_); }
  Result<void*> allocate(size_t bytes) override;
  Result<void*> allocate_host(size_t bytes) override;
  Result<void*> allocate_for_peers(size_t bytes) override;
  void release(void* memory) override;
  uint64_t allocated_bytes() const override { return allocated_bytes_; }
  void pin(void* memory, size_t bytes) override { cuda::pin(device_, memory, bytes); }
  void unpin(void* memory) override { cuda::unpin(device_, memory); }
  Result<std::unique_ptr<DeviceComm>> open_comm(GradientBuffer& buffer,
                                                DeviceCommOptions options) override;
  std::string comm_library() const override { return nccl_version_; }
  Status copy(DeviceLane lane, void* to, const void* from, size_t bytes) override;
  Status mark(uint32_t mark, DeviceLane lane) override;
  Status hold(DeviceLane lane, uint32_t mark) override;
  Status wait(uint32_t mark) override;
  Status follow(DeviceLane lane, void* stream) override;
  Status lead(void* stream, uint32_t mark) override;
  Status images(const cuda::ImageWork& work) override;
  LayerKernels layers() override { return {&*of_floats_, &*of_bf16_, &*fp8_}; }
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

 private:
  CudaModule() = default;
  Status init(uint32_t local_rank);
  GpuFacts facts() const;
  // The device is a setting of each thread, and autograd and the lanes have threads of their own.
  Status here() const { return cuda_status(cudaSetDevice(device_), "use the device"); }
  // The error of a call that asks for memory.
  static Status memory_status(cudaError_t error, const char* what) {
    const Status status = cuda_status(error, what);
    return error != cudaErrorMemoryAllocation ? status : Status(Code::kNoMemory, status.message());
  }
  Result<void*> keep(void* memory, size_t bytes, std::unordered_map<void*, size_t>* where);
  Status open_nccl();
  template <typename Ask>
  Result<void*> ask(const Ask& call) {
    const auto clear = [] { (void)cudaGetLastError(); };
    return cuda::ask_or_make_room(call, clear, torch_queue_.get());
  }
  cudaStream_t stream(DeviceLane lane) const { return streams_[static_cast<size_t>(lane)]; }
  Result<cudaEvent_t> event(uint32_t mark, bool make);
  Result<bool> is_recorded(cudaStream_t stream) const;
  Status check_is_not_recorded(cudaStream_t stream) const;

  int device_ = 0;
  std::optional<nccl::NcclApi> nccl_;
  std::string nccl_version_;  // empty: no connection was opened
  cudaDeviceProp properties_ = {};
  // None is the default one, which orders itself with others and cannot be captured.
  std::array<cudaStream_t, kLanes> streams_ = {};
  std::unique_ptr<TorchQueue> torch_queue_;
  std::optional<cuda::CudaLayers<float>> of_floats_;  // after init()
  std::optional<cuda::CudaLayers<cuda::Bf16>> of_bf16_;
  std::optional<cuda::CudaFp8> fp8_;
  std::mutex mutex_;
  std::array<cudaEvent_t, kDeviceMarks> events_ = {};
  std::array<cudaEvent_t, kLanes> followed_ = {};  // by the lane that follows
  std::unordered_map<void*, size_t> memory_;       // bytes
  std::unordered_map<void*, size_t> peer_memory_;  // bytes, from NCCL
  std::unordered_map<void*, size_t> host_memory_;  // bytes
  std::atomic<uint64_t> allocated_bytes_{0};
};

Status CudaModule::init(uint32_t local_rank) {
  int devices = 0;
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaGetDeviceCount(&devices), "look for GPUs"));
  if (devices == 0) return {Code::kConfig, "the driver shows no GPU"};
  device_ = static_cast<int>(local_rank % static_cast<uint32_t>(devices));
  LOCKSTEP_RETURN_IF_ERROR(here());
  LOCKSTEP_RETURN_IF_ERROR(
      cuda_status(cudaGetDeviceProperties(&properties_, device_), "ask what the GPU is"));
  for (cudaStream_t& stream : streams_) {
    LOCKSTEP_RETURN_IF_ERROR(
        cuda_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream"));
  }
  for (cudaEvent_t& event : followed_) {
    LOCKSTEP_RETURN_IF_ERROR(
        cuda_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event"));
  }
  of_floats_.emplace(device_, stream(DeviceLane::kCompute));
  of_bf16_.emplace(device_, stream(DeviceLane::kCompute));
  fp8_.emplace(device_, stream(DeviceLane::kCompute));
  return Status::ok();
}

CudaModule::~CudaModule() {
  cuda::drop_error(cudaSetDevice(device_));
  cuda::drop_error(cudaDeviceSynchronize());
  torch_queue_.reset();
  for (const auto& [memory, bytes] : memory_) cuda::drop_error(cudaFree(memory));
  for (const auto& [memory, bytes] : peer_memory_) (void)nccl_->release(memory);
  for (const auto& [memory, bytes] : host_memory_) cuda::drop_error(cudaFreeHost(memory));
  using Events = std::span<cudaEvent_t>;
  for (const Events events : {Events(events_), Events(followed_)}) {
    for (cudaEvent_t event : events) {
      if (event != nullptr) cuda::drop_error(cudaEventDestroy(event));
    }
  }
  for (cudaStream_t stream : streams_) {
    if (stream != nullptr) cuda::drop_error(cudaStreamDestroy(stream));
  }
}

GpuFacts CudaModule::facts() const {
  int runtime = 0;
  cuda::drop_error(cudaRuntimeGetVersion(&runtime));
  return {.name = properties_.name,
          .major = properties_.major,
          .minor = properties_.minor,
          .processors = properties_.multiProcessorCount,
          .kernel_bits = kKernelBits,
          .runtime = runtime};
}

Result<void*> CudaModule::allocate(size_t bytes) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  LOCKSTEP_ASSIGN_OR_RETURN(void* const memory, ask([bytes]() -> Result<void*> {
                              void* got = nullptr;
                              LOCKSTEP_RETURN_IF_ERROR(memory_status(cudaMalloc(&got, bytes),
                                                                     "allocate memory of the GPU"));
                              return got;
                            }));
  return keep(memory, bytes, &memory_);
}

// NCCL's allocator rounds up to pages of 2 MiB. If it has nothing to give, plain memory does.
Result<void*> CudaModule::allocate_for_peers(size_t bytes) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  if (!open_nccl().is_ok()) return allocate(bytes);
  void* memory = nullptr;
  if (nccl_->allocate(&memory, bytes) != ncclSuccess || memory == nullptr) {
    (void)cudaGetLastError();
    return allocate(bytes);
  }
  return keep(memory, bytes, &peer_memory_);
}

Status CudaModule::open_nccl() {
  if (nccl_) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(nccl_, nccl::open_nccl(kNcclLibrary));
  return Status::ok();
}

// Notes and clears new memory of the device.
Result<void*> CudaModule::keep(void* memory, size_t bytes,
                               std::unordered_map<void*, size_t>* where) {
  {
    std::lock_guard lock(mutex_);
    (*where)[memory] = bytes;
    allocated_bytes_ += bytes;
  }
  LOCKSTEP_RETURN_IF_ERROR(
      cuda_status(cudaMemsetAsync(memory, 0, bytes, stream(DeviceLane::kCompute)), "clear memory"));
  // The lane that uses it first finds it cleared.
  LOCKSTEP_RETURN_IF_ERROR(
      cuda_status(cudaStreamSynchronize(stream(DeviceLane::kCompute)), "clear memory"));
  return memory;
}

Result<void*> CudaModule::allocate_host(size_t bytes) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  LOCKSTEP_ASSIGN_OR_RETURN(
      void* const memory, ask([bytes]() -> Result<void*> {
        void* got = nullptr;
        LOCKSTEP_RETURN_IF_ERROR(memory_status(cudaHostAlloc(&got, bytes, cudaHostAllocDefault),
                                               "allocate pinned memory of the host"));
        return got;
      }));
  std::lock_guard lock(mutex_);
  host_memory_[memory] = bytes;
  return memory;
}

void CudaModule::release(void* memory) {
  if (memory == nullptr || !here().is_ok()) return;
  (void)cudaDeviceSynchronize();  // the next call reports its error, too
  std::lock_guard lock(mutex_);
  if (const auto of_device = memory_.extract(memory); !of_device.empty()) {
    allocated_bytes_ -= of_device.mapped();
    (void)cudaFree(memory);
  } else if (const auto of_peers = peer_memory_.extract(memory); !of_peers.empty()) {
    allocated_bytes_ -= of_peers.mapped();
    (void)nccl_->release(memory);
  } else if (host_memory_.erase(memory) > 0) {
    (void)cudaFreeHost(memory);
  }
}

Result<std::unique_ptr<DeviceComm>> CudaModule::open_comm(GradientBuffer& buffer,
                                                          DeviceCommOptions options) {
  LOCKSTEP_RETURN_IF_ERROR(open_nccl());
  const bool may_map_result = peer_memory_.contains(buffer.result());
  LOCKSTEP_ASSIGN_OR_RETURN(auto comm, CudaComm::open(device_, *nccl_,
                                                      {.gradients = stream(DeviceLane::kGradients),
                                                       .compute = stream(DeviceLane::kCompute)},
                                                      buffer, may_map_result, std::move(options)));
  nccl_version_ = comm->nccl_version();
  return std::unique_ptr<DeviceComm>(std::move(comm));
}

Status CudaModule::copy(DeviceLane lane, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(here());
  return cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream(lane)),
                     "copy between host and GPU");
}

// Null: never made.
Result<cudaEvent_t> CudaModule::event(uint32_t mark, bool make) {
  LOCKSTEP_CHECK(mark < kDeviceMarks, "no such mark");
  LOCKSTEP_RETURN_IF_ERROR(here());
  std::lock_guard lock(mutex_);
  cudaEvent_t& event = events_[mark];
  if (event == nullptr && make) {
    LOCKSTEP_RETURN_IF_ERROR(
        cuda_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event"));
  }
  return event;
}

Status CudaModule::mark(uint32_t mark, DeviceLane lane) {
  LOCKSTEP_ASSIGN_OR_RETURN(const cudaEvent_t event, this->event(mark, /*make=*/true));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_recorded, this->is_recorded(stream(lane)));
  return cuda_status(
      cudaEventRecordWithFlags(event, stream(lane),
                               is_recorded ? cudaEventRecordExternal : cudaEventRecordDefault),
      "record an event");
}

Status CudaModule::hold(DeviceLane lane, uint32_t mark) {
  LOCKSTEP_ASSIGN_OR_RETURN(const cudaEvent_t event, this->event(mark, /*make=*/false));
  if (event == nullptr) return Status::ok();
  return cuda_status(cudaStreamWaitEvent(stream(lane), event, 0), "order two streams");
}

Status CudaModule::wait(uint32_t mark) {
  LOCKSTEP_ASSIGN_OR_RETURN(const cudaEvent_t event, this->event(mark, /*make=*/false));
  if (event == nullptr) return Status::ok();
  return cuda_status(cudaEventSynchronize(event), "wait for the GPU");
}

Result<bool> CudaModule::is_recorded(cudaStream_t stream) const {
  LOCKSTEP_RETURN_IF_ERROR(here());
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  LOCKSTEP_RETURN_IF_ERROR(
      cuda_status(cudaStreamIsCapturing(stream, &capture), "ask whether a stream captures"));
  return capture != cudaStreamCaptureStatusNone;
}

Status CudaModule::check_is_not_recorded(cudaStream_t stream) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_recorded, this->is_recorded(stream));
  if (!is_recorded) return Status::ok();
  return {Code::kUsage,
          "the stream is recorded for a CUDA graph, whose replays would hand over nothing; leave "
          "run.backward() out of torch.cuda.graph()"};
}

// A wait keeps the point that the event had when it was enqueued, so one event serves all calls.
Status CudaModule::follow(DeviceLane lane, void* stream) {
  const auto other = static_cast<cudaStream_t>(stream);
  LOCKSTEP_RETURN_IF_ERROR(check_is_not_recorded(other));
  const cudaEvent_t event = followed_[static_cast<size_t>(lane)];
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaEventRecord(event, other), "record an event"));
  return cuda_status(cudaStreamWaitEvent(this->stream(lane), event, 0), "order two streams");
}

Status CudaModule::lead(void* stream, uint32_t mark) {
  LOCKSTEP_RETURN_IF_ERROR(check_is_not_recorded(static_cast<cudaStream_t>(stream)));
  LOCKSTEP_ASSIGN_OR_RETURN(const cudaEvent_t event, this->event(mark, /*make=*/false));
  if (event == nullptr) return Status::ok();
  return cuda_status(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event, 0),
                     "order two streams");
}

Status CudaModule::images(const cuda::ImageWork& work) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  return cuda::launch_images(work, stream(DeviceLane::kCompute));
}

Status CudaModule::add(DeviceLane lane, float* into, const float* from, uint64_t elements) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  return cuda::launch_add(into, from, elements, stream(lane));
}

Status CudaModule::block_totals(const cuda::TotalsWork& work) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  return cuda::launch_block_totals(work, stream(DeviceLane::kCompute));
}

Status CudaModule::decide(cuda::ApplyState* state, const cuda::StepRule& rule,
                          const cuda::BlockTotals* totals, uint32_t blocks, const float* control) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  return cuda::launch_decide(state, rule, totals, blocks, control, stream(DeviceLane::kCompute));
}

Status CudaModule::update(const cuda::StepVerdict* verdict, const cuda::UpdateChunk* chunks,
                          uint32_t count, const UpdateBuffers& buffers,
                          const UpdateFactors& factors, bool keeps_zeros) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  return cuda::launch_update(verdict, chunks, count, buffers, factors, keeps_zeros,
                             stream(DeviceLane::kCompute));
}

Status CudaModule::average(const cuda::StepVerdict* verdict, const float* params, uint64_t n,
                           float rate, float* average) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  return cuda::launch_average(verdict, params, n, rate, average, stream(DeviceLane::kCompute));
}

Status CudaModule::statistics(const cuda::StepVerdict* verdict, const float* sums, uint64_t n,
                              uint32_t slots, float* statistics) {
  LOCKSTEP_RETURN_IF_ERROR(here());
  return cuda::launch_statistics(verdict, sums, n, slots, statistics, stream(DeviceLane::kCompute));
}

}  // namespace
}  // namespace lockstep

extern "C" [[gnu::visibility("default")]] lockstep::OpenedModule lockstep_open_device_module(
    uint32_t local_rank) {
  lockstep::OpenedModule opened{lockstep::kDeviceModuleVersion, nullptr, nullptr};
  auto module = lockstep::CudaModule::create(local_rank);
  if (module.is_ok())
    opened.module = std::move(module).value().release();
  else
    opened.error = new lockstep::Status(module.status());
  return opened;
}
