// The TorchQueue of a GPU: a stream of ours as LibTorch's current one, and at::cuda::CUDAGraph.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <string>
#include <utility>

#include "worker/cuda/leave_pool.h"
#include "worker/cuda/module_entry.h"
#include "worker/cuda/torch_queue.h"
#include "worker/torch/device/flash_attention.h"

namespace lockstep {
namespace {

Status failed(const std::string& what, const std::exception& e) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&e);
  return {Code::kInternal,
          what + ": " + (of_torch != nullptr ? of_torch->what_without_backtrace() : e.what())};
}

// Captures of one process take turns: each registers LibTorch's generator, and there is one for a
// device. As long-lived as that. Engines share a process in tests only.
std::mutex& capture_lock() {
  static std::mutex lock;
  return lock;
}

class Graph final : public at::cuda::CUDAGraph {
 public:
  // True once the capture has ended in order, also if the graph could not be made from it.
  bool has_ended() const { return capture_ended_; }
};

class GraphRecording final : public Recording {
 public:
  Status replay() override try {
    graph.replay();
    return Status::ok();
  } catch (const std::exception& e) {
    return failed("replay a CUDA graph", e);
  }

  Graph graph;
};

class CudaTorchQueue final : public TorchQueue {
 public:
  CudaTorchQueue(cudaStream_t stream, int device)
      : stream_(c10::cuda::getStreamFromExternal(stream, static_cast<c10::DeviceIndex>(device))),
        pool_(at::cuda::graph_pool_handle()) {}

  Status make_current() override try {
    c10::cuda::set_device(stream_.device_index());  // a graph is captured on the current one
    c10::cuda::setCurrentCUDAStream(stream_);
    return Status::ok();
  } catch (const std::exception& e) {
    return failed("use the stream of the GPU module", e);
  }

  Status empty_cache() override try {
    c10::cuda::CUDACachingAllocator::emptyCache();
    return Status::ok();
  } catch (const std::exception& e) {
    return failed("empty LibTorch's cache", e);
  }

  const VarlenAttention* varlen_attention() const override { return &flash_; }
  int64_t refused_allocations() const override {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(stream_.device_index()).num_ooms;
  }
  bool records() const override { return true; }
  Result<std::unique_ptr<Recording>> record(const std::function<Status()>& body) override;

 private:
  Status capture(Graph& graph, const std::function<Status()>& body);
  void leave_pools(cuda::CaptureFailed when) const;

  const c10::cuda::CUDAStream stream_;
  const c10::cuda::MempoolId_t pool_;  // of all recordings
  const FlashAttention flash_;
};

// Thread-local: work of other threads meanwhile (waits of the communication thread, NCCL's) neither
// breaks the capture nor becomes a part of it.
Status CudaTorchQueue::capture(Graph& graph, const std::function<Status()>& body) {
  try {
    graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
  } catch (const std::exception& e) {
    leave_pools(cuda::CaptureFailed::kAtBegin);
    return failed("begin a CUDA graph", e);
  }
  Status status;
  try {
    status = body();
  } catch (const std::exception& e) {
    status = failed("record a CUDA graph", e);
  }
  try {  // also after an error: else the stream would go on capturing
    graph.capture_end();
  } catch (const std::exception& e) {
    leave_pools(graph.has_ended() ? cuda::CaptureFailed::kLater : cuda::CaptureFailed::kAtEnd);
    if (status.is_ok()) status = failed("end a CUDA graph", e);
  }
  if (!status.is_ok()) (void)cudaGetLastError();  // else the next launch would report it
  return status;
}

void CudaTorchQueue::leave_pools(cuda::CaptureFailed when) const {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  const c10::DeviceIndex device = stream_.device_index();
  cuda::leave_pool(
      when, [&] { allocator::endAllocateToPool(device, pool_); },
      [&] { allocator::releasePool(device, pool_); });
  at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
  cuda::leave_pool(
      when, [&] { host->end_allocate_to_pool(pool_); }, [&] { host->release_pool(pool_); });
  (void)cudaGetLastError();  // else the next launch would report it
}

// The memory that eager slots have cached would lie idle next to the recording's own.
Result<std::unique_ptr<Recording>> CudaTorchQueue::record(const std::function<Status()>& body) try {
  const std::lock_guard lock(capture_lock());
  stream_.synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
  auto recording = std::make_unique<GraphRecording>();
  LOCKSTEP_RETURN_IF_ERROR(capture(recording->graph, body));
  return std::unique_ptr<Recording>(std::move(recording));
} catch (const std::exception& e) {
  (void)cudaGetLastError();
  return failed("prepare a CUDA graph", e);
}

}  // namespace
}  // namespace lockstep

extern "C" [[gnu::visibility("default")]] lockstep::OpenedTorchQueue lockstep_open_torch_queue(
    void* stream, int device) {
  lockstep::OpenedTorchQueue opened{lockstep::kDeviceModuleVersion, nullptr, nullptr};
  try {
    opened.queue = new lockstep::CudaTorchQueue(static_cast<cudaStream_t>(stream), device);
  } catch (const std::exception& e) {
    opened.error = new lockstep::Status(lockstep::failed("open LibTorch's streams", e));
  }
  return opened;
}
