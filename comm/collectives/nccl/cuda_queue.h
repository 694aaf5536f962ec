// The DeviceQueue of a GPU: a stream of its own at the highest priority, and events that order it
// with the engine's streams.
//
// INVARIANTS
//  Q1 No call leaves an error behind as the thread's last one (cuda_status.h), not even a look at
//     an event that is not reached yet: the next kernel's launch check would report it.
//
// Thread-safety: as in device_queue.h.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "comm/collectives/nccl/device_queue.h"

namespace lockstep::nccl {

// The engine's streams. They outlive the queue.
struct EngineStreams {
  cudaStream_t gradients = nullptr;  // partial sums get ready on it
  cudaStream_t compute = nullptr;    // partials are written, and sums used, on it
};

class CudaQueue final : public DeviceQueue {
 public:
  // On the current device.
  static Result<std::unique_ptr<CudaQueue>> create(const EngineStreams& engine);
  ~CudaQueue() override;

  Status use_device() override;
  void* stream() override { return stream_; }
  Status follow_gradients() override {
    return order(engine_.gradients, gradients_reached_, stream_);
  }
  Status hold_compute() override { return order(stream_, queue_reached_, engine_.compute); }
  Status mark_end() override;
  Result<bool> reached_end() override;
  Status sum(const DeviceSum& sum) override;
  Result<float*> stage(uint64_t elements) override;

 private:
  explicit CudaQueue(const EngineStreams& engine) : engine_(engine) {}
  Status init();
  // Makes `later` go on only after the present end of `earlier`.
  static Status order(cudaStream_t earlier, cudaEvent_t reached, cudaStream_t later);

  const EngineStreams engine_;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t gradients_reached_ = nullptr;
  cudaEvent_t queue_reached_ = nullptr;
  cudaEvent_t end_ = nullptr;
  // Outgrown stages stay until the end, because freeing memory would wait for the device.
  std::vector<float*> stages_;
  uint64_t stage_elements_ = 0;
};

}  // namespace lockstep::nccl
