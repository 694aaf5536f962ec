// What a device does for the engine besides LibTorch's operators: memory, copies and their order,
// and our own kernels. An interface of plain values, since two binaries meet at it that share
// nothing else: the worker, which links no CUDA, and liblockstep-cuda.so, which it opens where a
// driver is found. Tests put plain memory behind it.
//
// LANES are queues of work: each in its own order, all side by side. Kernels run on kCompute, but
// for add(); the operators of threads that have called torch_queue()->make_current() do, too.
// Everything is enqueued; only wait() waits.
//
// MARKS, by numbers below kDeviceMarks, say how far a lane has come: mark() sets one to
// where the lane is now, hold() and wait() wait for where it was set last. One that was never set
// holds nobody. While kCompute is recorded (TorchQueue), mark() on it is recorded as well: each
// replay sets the mark anew when it is enqueued, to where in it mark() was called.
//
// Errors: kConfig where there is no device that can be used, else kInternal: the device's memory is
// lost, and the process has to be started again. What goes wrong in a lane shows at a later call.
//
// Thread-safety: any thread, but each lane from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/cuda/apply_state.h"
#include "worker/cuda/device_comm.h"
#include "worker/cuda/images.h"
#include "worker/cuda/layer_kernels.h"
#include "worker/cuda/tables.h"
#include "worker/cuda/torch_queue.h"
#include "worker/optim/update_rules.h"

namespace lockstep {

inline constexpr uint32_t kDeviceMarks = 4'096;

enum class DeviceLane : uint32_t {
  kCompute,    // operators and kernels
  kInputs,     // batches to the device
  kGradients,  // gradients to the host, or to where they are summed, and their sums
};

class DeviceModule {
 public:
  virtual ~DeviceModule() = default;

  virtual std::string torch_device() const = 0;  // as at::Device takes it: "cuda:0"
  // kCompute as a cudaStream_t; null: LibTorch's operators run there whatever its stream.
  virtual void* compute_stream() const = 0;
  // What LibTorch makes of that stream; null: nothing was given.
  virtual TorchQueue* torch_queue() const = 0;
  virtual void give(std::unique_ptr<TorchQueue> queue) = 0;
  // What decides the bits, "key=value" lines.
  virtual std::vector<std::string> fingerprint() const = 0;

  // Zeroed, 256-byte aligned memory of the device; of the host, from where copies are fast. Both
  // last as long as the module.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual Result<void*> allocate_host(size_t bytes) = 0;
  virtual uint64_t allocated_bytes() const = 0;  // of the device, by us
  // Copies from and to this memory of the host become fast, where the system allows, until unpin().
  // It has pages of its own; else it stays as it is.
  virtual void pin(void* memory, size_t bytes) = 0;
  virtual void unpin(void* memory) = 0;

  // Connects this device with those of peers, for sums over `buffer`, whose memory is the device's
  // and outlives the connection, as the module does. `is_exact`: along the reduction tree. kConfig
  // where the library for it is missing.
  virtual Result<std::unique_ptr<DeviceComm>> open_comm(GradientBuffer& buffer, bool is_exact) = 0;

  virtual Status copy(DeviceLane lane, void* to, const void* from, size_t bytes) = 0;
  virtual Status mark(uint32_t mark, DeviceLane lane) = 0;
  virtual Status hold(DeviceLane lane, uint32_t mark) = 0;  // what is enqueued from here on
  virtual Status wait(uint32_t mark) = 0;                   // the caller

  // Bytes of images to floats through a table of 256 floats a channel.
  virtual Status images(const cuda::ImageWork& work) = 0;

  virtual LayerKernels layers() = 0;  // both kinds; they last as long as the module

  // into[i] += from[i]; `elements` is a multiple of four.
  virtual Status add(DeviceLane lane, float* into, const float* from, uint64_t elements) = 0;

  // The end of a step (apply_state.h), in this order.
  virtual Status block_totals(const cuda::TotalsWork& work) = 0;
  virtual Status decide(cuda::ApplyState* state, const cuda::StepRule& rule,
                        const cuda::BlockTotals* totals, uint32_t blocks, const float* loss) = 0;
  virtual Status update(const cuda::Verdict* verdict, const cuda::UpdateChunk* chunks,
                        uint32_t count, const UpdateBuffers& buffers,
                        const UpdateFactors& factors) = 0;
  virtual Status statistics(const cuda::Verdict* verdict, const float* sums, uint64_t n,
                            uint32_t slots, float* statistics) = 0;
};

}  // namespace lockstep
