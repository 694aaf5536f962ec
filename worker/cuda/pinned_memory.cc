#include "worker/cuda/pinned_memory.h"

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/gpu/cuda_status.h"

namespace lockstep::cuda {
namespace {

constexpr size_t kPageBytes = 4096;

bool use(int device) {
  return cuda_status(cudaSetDevice(device), "use the device").is_ok();
}

}  // namespace

void pin(int device, void* memory, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(memory) % kPageBytes != 0 || !use(device)) return;
  drop_error(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
}

void unpin(int device, void* memory) {
  if (use(device)) drop_error(cudaHostUnregister(memory));
}

}  // namespace lockstep::cuda
