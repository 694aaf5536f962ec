#include "comm/collectives/nccl/cuda_queue.h"

#include <algorithm>

#include "comm/base/gpu/cuda_status.h"
#include "comm/collectives/nccl/queue_kernels.h"

namespace lockstep::nccl {

using cuda::cuda_status;

Result<std::unique_ptr<CudaQueue>> CudaQueue::create(const EngineStreams& engine, uint64_t* gate) {
  std::unique_ptr<CudaQueue> queue(new CudaQueue(engine, gate));
  LOCKSTEP_RETURN_IF_ERROR(queue->init());
  return queue;
}

Status CudaQueue::init() {
  constexpr size_t kTagBytes = sizeof(uint64_t) * 2 * kTagWords;
  int least = 0;
  int greatest = 0;
  LOCKSTEP_RETURN_IF_ERROR(
      cuda_status(cudaDeviceGetStreamPriorityRange(&least, &greatest), "ask for priorities"));
  LOCKSTEP_RETURN_IF_ERROR(
      cuda_status(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
                  "make the communication stream"));
  for (cudaEvent_t* event : {&gradients_reached_, &queue_reached_, &end_}) {
    LOCKSTEP_RETURN_IF_ERROR(
        cuda_status(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "make an event"));
  }
  void* memory = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaMalloc(&memory, kTagBytes), "allocate tags"));
  tags_ = static_cast<uint64_t*>(memory);
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(
      cudaHostAlloc(&memory, sizeof(uint64_t), cudaHostAllocMapped), "allocate the tags' word"));
  differs_ = static_cast<uint64_t*>(memory);
  *differs_ = 0;
  return Status::ok();
}

CudaQueue::~CudaQueue() {
  for (float* stage : stages_) (void)cudaFree(stage);
  if (tags_ != nullptr) (void)cudaFree(tags_);
  if (differs_ != nullptr) (void)cudaFreeHost(differs_);
  if (gradients_reached_ != nullptr) (void)cudaEventDestroy(gradients_reached_);
  if (queue_reached_ != nullptr) (void)cudaEventDestroy(queue_reached_);
  if (end_ != nullptr) (void)cudaEventDestroy(end_);
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

Status CudaQueue::order(cudaStream_t earlier, cudaEvent_t reached, cudaStream_t later) {
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaEventRecord(reached, earlier), "record an event"));
  return cuda_status(cudaStreamWaitEvent(later, reached, 0), "wait for an event");
}

Status CudaQueue::mark_end() {
  return cuda_status(cudaEventRecord(end_, stream_), "record an event");
}

Result<bool> CudaQueue::reached_end() {
  const cudaError_t found = cudaEventQuery(end_);
  if (found == cudaErrorNotReady) return false;
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(found, "exchange gradients"));
  return true;
}

Status CudaQueue::sum(const DeviceSum& sum) {
  return launch_sum(sum, stream_);
}

Result<float*> CudaQueue::stage(uint64_t elements) {
  if (elements > stage_elements_) {
    stage_elements_ = std::max(elements, 2 * stage_elements_);
    void* memory = nullptr;
    LOCKSTEP_RETURN_IF_ERROR(
        cuda_status(cudaMalloc(&memory, stage_elements_ * sizeof(float)), "allocate the stage"));
    stages_.push_back(static_cast<float*>(memory));
  }
  return stages_.empty() ? nullptr : stages_.back();
}

Status CudaQueue::put_tag(uint64_t tag) {
  return launch_put_tag(tags_, tag, stream_);
}

Status CudaQueue::check_tag(uint64_t tag, Generation generation) {
  return launch_check_tag(tags_ + kTagWords, {tag, generation}, gate_, differs_, stream_);
}

bool CudaQueue::tags_differ(Generation generation) const {
  return *static_cast<volatile const uint64_t*>(differs_) == generation;
}

}  // namespace lockstep::nccl
