// The functions of the CUDA runtime that the NCCL backend and the GPU module call, in plain memory,
// with the habits of the real ones that code must reckon with:
//
//  - a stream runs its work on a thread of its own, later than it was enqueued, and goes on with it
//    after it was destroyed. It keeps a bounded number of works: with more the next call waits
//  - a failed call stays the thread's last error until a call takes it, and so does the answer
//    that an event is not reached yet; a launch check reports the error that it finds there
//  - the current device is the thread's own, and device 0 for a thread that has not chosen; a call
//    makes a context on it
//  - freed memory is gone at once (AddressSanitizer sees code that still writes there)
//
// It defines CUDA's own symbols, so a program links it instead of the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace lockstep::testing {

// Tells how much of a stream's work is done. Events may outlast the stream.
class StreamProgress {
 public:
  void advance();
  bool has_reached(uint64_t position) const;  // all work posted before it is done
  void wait_for(uint64_t position) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  uint64_t done_ = 0;
};

}  // namespace lockstep::testing

// The target of a cudaStream_t.
struct CUstream_st {
 public:
  static constexpr size_t kQueued = 1'024;
  CUstream_st();
  ~CUstream_st();  // finishes its work
  void post(std::function<void()> work);
  uint64_t posted() const;
  size_t queued() const;   // works that have not begun
  size_t waiting() const;  // calls of post()
  std::shared_ptr<lockstep::testing::StreamProgress> progress() const { return progress_; }

 private:
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  uint64_t posted_ = 0;
  size_t waiting_ = 0;
  bool is_ending_ = false;
  const std::shared_ptr<lockstep::testing::StreamProgress> progress_ =
      std::make_shared<lockstep::testing::StreamProgress>();
  std::thread thread_;  // last, because it uses the others
};

namespace lockstep::testing {

// There is one for the process, because CUDA's functions are plain ones.
class FakeCuda {
 public:
  static FakeCuda& get();

  // Waits for the streams that were destroyed, and forgets contexts. Call it only between tests.
  void reset();
  void destroy(cudaStream_t stream);

  // Every call of CUDA or NCCL calls this, to note the calling thread's device.
  void touch();
  std::set<int> contexts() const;  // the devices that were touched

  void pin(void* memory, bool is_pinned);
  std::set<void*> pinned() const;

  cudaStream_t recorded = nullptr;  // for a graph
  bool has_memory = true;           // false: cudaMalloc and cudaHostAlloc fail

  // Every GPU of this machine.
  struct Gpu {
    const char* name = "NVIDIA H100 80GB HBM3";
    int major = 9;
    int minor = 0;
    int processors = 132;
  };
  int gpus = 1;
  Gpu gpu;

  void add(cudaStream_t stream);
  void wait_for_all() const;  // that has been posted on streams

 private:
  mutable std::mutex mutex_;
  std::set<int> contexts_;
  std::set<void*> pinned_;
  std::set<cudaStream_t> streams_;  // that are not destroyed
  std::vector<std::thread> destroying_;
};

}  // namespace lockstep::testing
