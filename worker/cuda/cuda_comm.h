// The DeviceComm of CUDA: NCCL's communicators over one GPU's buffer, on a stream of their own.
//
// NCCL and CUDA take the device from the calling thread, and the engine calls from several threads.
// So every call first sets the device.
//
// Thread-safety: as DeviceComm.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "comm/base/clock.h"
#include "comm/collectives/nccl/cuda_queue.h"
#include "comm/collectives/nccl/nccl_context.h"
#include "worker/cuda/device_comm.h"

namespace lockstep {

class CudaComm final : public DeviceComm {
 public:
  // The streams and `buffer` outlive the connection. `may_map_result`: NcclContext.
  static Result<std::unique_ptr<CudaComm>> open(int device, const nccl::NcclApi& api,
                                                const nccl::EngineStreams& streams,
                                                GradientBuffer& buffer, bool may_map_result,
                                                DeviceCommOptions options);
  ~CudaComm() override;

  Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next) override;

  const std::string& nccl_version() const { return nccl_version_; }  // "2.28.9"

 private:
  CudaComm(int device, nccl::NcclApi api, std::unique_ptr<nccl::CudaQueue> queue,
           GradientBuffer& buffer, bool may_map_result, DeviceCommOptions options);
  static nccl::AdapterLinks links_of(int device);

  const int device_;
  const std::string nccl_version_;
  const SystemClock clock_;
  const std::unique_ptr<nccl::CudaQueue> queue_;
  nccl::NcclContext context_;  // last: it uses the others
};

}  // namespace lockstep
