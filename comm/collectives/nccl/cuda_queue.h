// The DeviceQueue of a GPU: a stream of its own at the highest priority, events that order it with
// the engine's streams, and a little memory for tags.
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
  // On the current device. `gate`: the word of gate_word.h in device memory. It outlives the queue.
  static Result<std::unique_ptr<CudaQueue>> create(const EngineStreams& engine, uint64_t* gate);
  ~CudaQueue() override;

  void* stream() override { return stream_; }
  Status follow_gradients() override {
    return order(engine_.gradients, gradients_reached_, stream_);
  }
  Status hold_compute() override { return order(stream_, queue_reached_, engine_.compute); }
  Status mark_end() override;
  Result<bool> reached_end() override;
  Status sum(const DeviceSum& sum) override;
  Result<float*> stage(uint64_t elements) override;
  Status put_tag(uint64_t tag) override;
  const uint64_t* tag_sent() const override { return tags_; }
  uint64_t* tag_received() override { return tags_ + kTagWords; }
  Status check_tag(uint64_t tag, Generation generation) override;
  bool tags_differ(Generation generation) const override;

 private:
  CudaQueue(const EngineStreams& engine, uint64_t* gate) : engine_(engine), gate_(gate) {}
  Status init();
  // Makes `later` go on only after the present end of `earlier`.
  static Status order(cudaStream_t earlier, cudaEvent_t reached, cudaStream_t later);

  const EngineStreams engine_;
  uint64_t* const gate_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t gradients_reached_ = nullptr;
  cudaEvent_t queue_reached_ = nullptr;
  cudaEvent_t end_ = nullptr;
  uint64_t* tags_ = nullptr;     // sent, received
  uint64_t* differs_ = nullptr;  // pinned: the generation in which tags differed, or 0
  // Outgrown stages stay until the end, because freeing memory would wait for the device.
  std::vector<float*> stages_;
  uint64_t stage_elements_ = 0;
};

}  // namespace lockstep::nccl
