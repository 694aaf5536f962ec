// The services of a device to the engine besides LibTorch's operators: memory, copies and their
// order, and our own kernels. It is an interface of plain values, because two binaries meet here
// that share nothing else. The worker links no CUDA. It opens liblockstep-cuda.so if it finds a
// driver. Tests implement the interface with plain memory.
//
// LANES are queues of work. Each lane keeps its own order, and all lanes run side by side. Kernels
// run on kCompute, except add(). The operators of threads that have called
// torch_queue()->make_current() also run on kCompute. All calls enqueue; only wait() waits.
//
// MARKS have numbers below kDeviceMarks and say how far a lane has come. mark() sets a mark to
// where the lane is now. hold() and wait() wait for the last setting of a mark. Neither waits for a
// mark that was never set. While kCompute is recorded (TorchQueue), mark() on kCompute is recorded
// as well. Each replay sets the mark again when it is enqueued, to the place of the mark() call
// inside the replay.
//
// STREAMS of others, as a training loop in Python has them, are `cudaStream_t` of the same device,
// and null is one, too. follow() and lead() put work of such a stream in order with the lanes.
//
// Errors: kConfig if no device can be used. kNoMemory from allocate() and allocate_host(): nothing
// has changed, and smaller work may still fit. Else kInternal: the device's memory is lost, and the
// process must restart. Errors in a lane show at a later call.
//
// Thread-safety: any thread, but only one thread at a time for each lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/cuda/device_comm.h"
#include "worker/cuda/kernels/apply_state.h"
#include "worker/cuda/kernels/images.h"
#include "worker/cuda/kernels/layer_kernels.h"
#include "worker/cuda/kernels/tables.h"
#include "worker/cuda/torch_queue.h"
#include "worker/optim/update_rules.h"

namespace lockstep {

inline constexpr uint32_t kDeviceMarks = 4'096;

enum class DeviceLane : uint32_t {
  kCompute,    // operators and kernels
  kInputs,     // batches to the device
  kGradients,  // gradients to the host or to where they are summed, and their sums
};

class DeviceModule {
 public:
  virtual ~DeviceModule() = default;

  virtual std::string torch_device() const = 0;  // as at::Device takes it: "cuda:0"
  // kCompute as a cudaStream_t. Null: LibTorch's operators run on kCompute whatever their stream
  // is.
  virtual void* compute_stream() const = 0;
  // LibTorch's view of this stream, from give(). Null: give() was not called.
  virtual TorchQueue* torch_queue() const = 0;
  virtual void give(std::unique_ptr<TorchQueue> queue) = 0;
  // The facts that decide the bits, as "key=value" lines.
  virtual std::vector<std::string> fingerprint() const = 0;
  // kConfig, with the device's name and what to do, if it has no matrix products in fp8.
  virtual Status check_fp8() const = 0;

  // allocate(): zeroed, 256-byte aligned memory of the device. allocate_host(): memory of the host
  // from which copies are fast. Both last until release(), or as long as the module.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual Result<void*> allocate_host(size_t bytes) = 0;
  // allocate(), but of a kind that the devices of peers may read and write directly, if there is
  // one.
  virtual Result<void*> allocate_for_peers(size_t bytes) { return allocate(bytes); }
  // Frees memory of one of them; null: does nothing. Waits until the device has done all that it
  // was asked to. Not while kCompute is recorded.
  virtual void release(void* memory) = 0;
  virtual uint64_t allocated_bytes() const = 0;  // of the device, by this module
  // Makes copies from and to this memory of the host fast until unpin(), if the system allows it.
  // The memory needs pages of its own; otherwise pin() changes nothing.
  virtual void pin(void* memory, size_t bytes) = 0;
  virtual void unpin(void* memory) = 0;

  // Connects this device with the devices of peers, for sums over `buffer`. The memory of `buffer`
  // is the device's. `buffer` and the module outlive the connection. kConfig if the library for the
  // connection is missing.
  virtual Result<std::unique_ptr<DeviceComm>> open_comm(GradientBuffer& buffer,
                                                        DeviceCommOptions options) = 0;
  // The version of this library ("2.28.9"), which peers need alike; empty: no connection was
  // opened.
  virtual std::string comm_library() const = 0;

  virtual Status copy(DeviceLane lane, void* to, const void* from, size_t bytes) = 0;
  virtual Status mark(uint32_t mark, DeviceLane lane) = 0;
  virtual Status hold(DeviceLane lane, uint32_t mark) = 0;  // delays later work of `lane`
  virtual Status wait(uint32_t mark) = 0;                   // blocks the caller
  // Delays later work of `lane` until all that `stream` holds now is done. Both give kUsage if the
  // stream is recorded for a graph.
  virtual Status follow(DeviceLane lane, void* stream) = 0;
  // As hold(), for later work of `stream`.
  virtual Status lead(void* stream, uint32_t mark) = 0;

  // Converts bytes of images to floats through a table of 256 floats a channel.
  virtual Status images(const cuda::ImageWork& work) = 0;

  virtual LayerKernels layers() = 0;  // of both types; they last as long as the module

  // into[i] += from[i]; `elements` is a multiple of four.
  virtual Status add(DeviceLane lane, float* into, const float* from, uint64_t elements) = 0;

  // The functions for the end of a step (apply_state.h), in the order of their calls.
  virtual Status block_totals(const cuda::TotalsWork& work) = 0;
  virtual Status decide(cuda::ApplyState* state, const cuda::StepRule& rule,
                        const cuda::BlockTotals* totals, uint32_t blocks, const float* control) = 0;
  virtual Status update(const cuda::StepVerdict* verdict, const cuda::UpdateChunk* chunks,
                        uint32_t count, const UpdateBuffers& buffers, const UpdateFactors& factors,
                        bool keeps_zeros) = 0;
  virtual Status average(const cuda::StepVerdict* verdict, const float* params, uint64_t n,
                         float rate, float* average) = 0;
  virtual Status statistics(const cuda::StepVerdict* verdict, const float* sums, uint64_t n,
                            uint32_t slots, float* statistics) = 0;
};

}  // namespace lockstep
