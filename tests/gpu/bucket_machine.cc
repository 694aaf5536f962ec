#include "tests/gpu/bucket_machine.h"

#include <cuda_runtime_api.h>

#include <cstdlib>

#include "comm/base/gpu/cuda_status.h"

namespace lockstep::testing {

Result<BucketMachine> open_machine() {
  BucketMachine machine;
  int gpus = 0;
  LOCKSTEP_RETURN_IF_ERROR(cuda::cuda_status(cudaGetDeviceCount(&gpus), "look for GPUs"));
  if (gpus == 0) return Status(Code::kConfig, "this machine has no GPU: NOT TESTED here");
  // As prepare_gpu_environment() does without comm.trusted_network.
  setenv("NCCL_SOCKET_IFNAME", "lo", /*replace=*/1);
  setenv("NCCL_IB_DISABLE", "1", /*replace=*/1);
  LOCKSTEP_ASSIGN_OR_RETURN(machine.api, nccl::open_nccl("libnccl.so.2"));
  machine.gpus = static_cast<uint32_t>(gpus);
  machine.bucket_bytes = uint64_t{64} << 20;
  machine.is_hopeless = [] { return false; };
  machine.misuses = [] { return std::vector<std::string>(); };
  return machine;
}

}  // namespace lockstep::testing
