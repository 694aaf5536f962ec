#include "comm/collectives/nccl/cuda_queue.h"

#include <algorithm>

#include "comm/base/gpu/cuda_status.h"
#include "comm/collectives/nccl/queue_kernels.h"

namespace lockstep::nccl {

using cuda::cuda_status;
using cuda::drop_error;

Result<std::unique_ptr<CudaQueue>> CudaQueue::create(const EngineStreams& engine) {
  std::unique_ptr<CudaQueue> queue(new CudaQueue(engine));
  LOCKSTEP_RETURN_IF_ERROR(queue->init());
  return queue;
}

Status CudaQueue::init() {
  int least = 0;
  int greatest = 0;
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaGetDevice(&device_), "ask for the device"));
  LOCKSTEP_RETURN_IF_ERROR(
      cuda_status(cudaDeviceGetStreamPriorityRange(&least, &greatest), "ask for priorities"));
  LOCKSTEP_RETURN_IF_ERROR(
      cuda_status(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
                  "make the communication stream"));
  for (cudaEvent_t* event : {&gradients_reached_, &queue_reached_, &end_}) {
    LOCKSTEP_RETURN_IF_ERROR(
        cuda_status(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "make an event"));
  }
  return Status::ok();
}

CudaQueue::~CudaQueue() {
  for (float* stage : stages_) drop_error(cudaFree(stage));
  for (cudaEvent_t event : {gradients_reached_, queue_reached_, end_}) {
    if (event != nullptr) drop_error(cudaEventDestroy(event));
  }
  if (stream_ != nullptr) drop_error(cudaStreamDestroy(stream_));
}

Status CudaQueue::use_device() {
  return cuda_status(cudaSetDevice(device_), "use the device");
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
  if (found == cudaErrorNotReady) {
    drop_error(found);
    return false;
  }
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(found, "exchange gradients"));
  return true;
}

Status CudaQueue::sum(const DeviceSum& sum) {
  return launch_sum(sum, stream_);
}

Result<float*> CudaQueue::stage(uint64_t elements) {
  if (elements > stage_elements_) {
    const uint64_t more = std::max(elements, 2 * stage_elements_);
    void* memory = nullptr;
    LOCKSTEP_RETURN_IF_ERROR(
        cuda_status(cudaMalloc(&memory, more * sizeof(float)), "allocate the stage"));
    stages_.push_back(static_cast<float*>(memory));
    stage_elements_ = more;
  }
  return stages_.empty() ? nullptr : stages_.back();
}

}  // namespace lockstep::nccl
