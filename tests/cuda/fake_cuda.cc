#include "tests/cuda/fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "comm/base/gpu/cuda_status.h"
#include "comm/collectives/nccl/queue_kernels.h"

using lockstep::testing::FakeCuda;

namespace {

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t ended(cudaError_t error) {
  FakeCuda::get().touch();
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace

struct CUevent_st {
  std::shared_ptr<lockstep::testing::StreamProgress> of;  // null: never recorded
  uint64_t position = 0;
};

CUstream_st::CUstream_st() : thread_([this] { loop(); }) {}

CUstream_st::~CUstream_st() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CUstream_st::post(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.wait(lock, [this] { return work_.size() < kQueued; });
  --waiting_;
  work_.push_back(std::move(work));
  ++posted_;
  changed_.notify_all();
}

uint64_t CUstream_st::posted() const {
  std::lock_guard lock(mutex_);
  return posted_;
}

size_t CUstream_st::queued() const {
  std::lock_guard lock(mutex_);
  return work_.size();
}

size_t CUstream_st::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

void CUstream_st::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !work_.empty(); });
    if (work_.empty()) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    changed_.notify_all();
    lock.unlock();
    work();
    work = nullptr;
    progress_->advance();
    lock.lock();
  }
}

namespace lockstep::testing {

void StreamProgress::advance() {
  std::lock_guard lock(mutex_);
  ++done_;
  changed_.notify_all();
}

bool StreamProgress::has_reached(uint64_t position) const {
  std::lock_guard lock(mutex_);
  return done_ >= position;
}

void StreamProgress::wait_for(uint64_t position) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= position; });
}

FakeCuda& FakeCuda::get() {
  static FakeCuda fake;
  return fake;
}

void FakeCuda::reset() {
  std::lock_guard lock(mutex_);
  for (std::thread& thread : destroying_) thread.join();
  destroying_.clear();
  contexts_.clear();
  pinned_.clear();
  has_memory = true;
  last_error = cudaSuccess;
}

void FakeCuda::destroy(cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  destroying_.emplace_back([stream] { delete stream; });
}

void FakeCuda::touch() {
  std::lock_guard lock(mutex_);
  contexts_.insert(current_device);
}

std::set<int> FakeCuda::contexts() const {
  std::lock_guard lock(mutex_);
  return contexts_;
}

void FakeCuda::pin(void* memory, bool is_pinned) {
  std::lock_guard lock(mutex_);
  if (is_pinned)
    pinned_.insert(memory);
  else
    pinned_.erase(memory);
}

std::set<void*> FakeCuda::pinned() const {
  std::lock_guard lock(mutex_);
  return pinned_;
}

}  // namespace lockstep::testing

extern "C" {

cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return ended(cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

const char* cudaGetErrorString(cudaError_t) {
  return "an error of CUDA";
}

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorNotReady ? "cudaErrorNotReady" : "cudaError";
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return ended(cudaSuccess);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  *stream = new CUstream_st;
  return ended(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  FakeCuda::get().destroy(stream);
  return ended(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  *event = new CUevent_st;
  return ended(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *event = {stream->progress(), stream->posted()};
  return ended(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const bool is_reached = event->of == nullptr || event->of->has_reached(event->position);
  return ended(is_reached ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  stream->post([at = *event] { at.of->wait_for(at.position); });
  return ended(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return ended(cudaSuccess);
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (!FakeCuda::get().has_memory) return ended(cudaErrorMemoryAllocation);
  *memory = std::malloc(bytes);
  return ended(cudaSuccess);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return ended(cudaSuccess);
}

// Copies are done at once; nothing else is enqueued on the legacy stream.
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream != cudaStreamLegacy) stream->progress()->wait_for(stream->posted());
  return ended(cudaSuccess);
}

cudaError_t cudaHostRegister(void* memory, size_t, unsigned int) {
  FakeCuda::get().pin(memory, true);
  return ended(cudaSuccess);
}

cudaError_t cudaHostUnregister(void* memory) {
  FakeCuda::get().pin(memory, false);
  return ended(cudaSuccess);
}

cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return ended(cudaSuccess);
}

}  // extern "C"

namespace lockstep::nccl {

Status launch_sum(const DeviceSum& sum, cudaStream_t stream) {
  if (sum.elements == 0) return Status::ok();
  FakeCuda::get().touch();
  stream->post([sum] {
    for (uint64_t i = 0; i < sum.elements; ++i) sum.out[i] = sum_element(sum, i);
  });
  return cuda::cuda_status(cudaGetLastError(), "launch a sum of partials");
}

}  // namespace lockstep::nccl
