#include "tests/cuda/fake_cuda.h"

#include <cstdio>
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
  gpus = 1;
  gpu = {};
  last_error = cudaSuccess;
}

void FakeCuda::add(cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  streams_.insert(stream);
}

void FakeCuda::wait_for_all() const {
  std::vector<std::pair<std::shared_ptr<StreamProgress>, uint64_t>> ends;
  {
    std::lock_guard lock(mutex_);
    for (cudaStream_t stream : streams_) ends.emplace_back(stream->progress(), stream->posted());
  }
  for (const auto& [progress, posted] : ends) progress->wait_for(posted);
}

void FakeCuda::destroy(cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  streams_.erase(stream);
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

// Questions about a device make no context on it.
cudaError_t cudaGetDeviceCount(int* devices) {
  *devices = FakeCuda::get().gpus;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  const FakeCuda::Gpu& gpu = FakeCuda::get().gpu;
  *properties = {};
  std::strncpy(properties->name, gpu.name, sizeof properties->name - 1);
  properties->major = gpu.major;
  properties->minor = gpu.minor;
  properties->multiProcessorCount = gpu.processors;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<size_t>(size), "0000:%02X:00.0", 0x30 + device);
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  FakeCuda::get().wait_for_all();
  return ended(cudaSuccess);
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
  FakeCuda::get().add(*stream);
  return ended(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
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

// The flags matter only for captures. This stand-in captures nothing; a test may say that a stream
// is recorded.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream != nullptr && stream == FakeCuda::get().recorded ? cudaStreamCaptureStatusActive
                                                                    : cudaStreamCaptureStatusNone;
  return ended(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->of != nullptr) event->of->wait_for(event->position);
  return ended(cudaSuccess);
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

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  stream->post([=] { std::memcpy(to, from, bytes); });
  return ended(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  stream->post([=] { std::memset(memory, value, bytes); });
  return ended(cudaSuccess);
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned int) {
  return cudaMalloc(memory, bytes);
}

cudaError_t cudaFreeHost(void* memory) {
  return cudaFree(memory);
}

// Copies are done at once, and the legacy stream has no other work.
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
