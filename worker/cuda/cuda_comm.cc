#include "worker/cuda/cuda_comm.h"

#include <array>
#include <utility>

#include "comm/base/gpu/cuda_status.h"
#include "comm/collectives/forwarding.h"

namespace lockstep {
namespace {

Status use(int device) {
  return cuda::cuda_status(cudaSetDevice(device), "use the device");
}

// The same Collective, from any thread.
class OnDevice final : public Forwarding<DeviceCollective> {
 public:
  OnDevice(int device, std::unique_ptr<DeviceCollective> of)
      : Forwarding(std::move(of)), device_(device) {}

  Status begin_step(const Tag& tag, const StepMerge& merge) override {
    LOCKSTEP_RETURN_IF_ERROR(use(device_));
    return inner().begin_step(tag, merge);
  }
  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    LOCKSTEP_RETURN_IF_ERROR(use(device_));
    return inner().all_reduce(tag, range);
  }
  Result<uint64_t> wait_for_sums() override {
    LOCKSTEP_RETURN_IF_ERROR(use(device_));
    return inner().wait_for_sums();
  }

 private:
  const int device_;
};

}  // namespace

Result<std::unique_ptr<CudaComm>> CudaComm::open(int device, const nccl::NcclApi& api,
                                                 const nccl::EngineStreams& streams,
                                                 GradientBuffer& buffer, bool may_map_result,
                                                 DeviceCommOptions options) {
  LOCKSTEP_RETURN_IF_ERROR(use(device));
  LOCKSTEP_ASSIGN_OR_RETURN(auto queue, nccl::CudaQueue::create(streams));
  return std::unique_ptr<CudaComm>(
      new CudaComm(device, api, std::move(queue), buffer, may_map_result, std::move(options)));
}

nccl::AdapterLinks CudaComm::links_of(int device) {
  std::array<char, 32> pci{};
  const cudaError_t asked = cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), device);
  cuda::drop_error(asked);
  return {asked == cudaSuccess ? pci.data() : "", "/sys"};
}

CudaComm::CudaComm(int device, nccl::NcclApi api, std::unique_ptr<nccl::CudaQueue> queue,
                   GradientBuffer& buffer, bool may_map_result, DeviceCommOptions options)
    : device_(device),
      nccl_version_(api.version),
      queue_(std::move(queue)),
      context_(api, clock_, *queue_, buffer,
               options.is_exact ? nccl::Numerics::kExact : nccl::Numerics::kFast, may_map_result,
               links_of(device), {.told = std::move(options.on_stuck)}) {}

CudaComm::~CudaComm() {
  (void)use(device_);
}

Result<std::unique_ptr<DeviceCollective>> CudaComm::connect(DeviceGeneration next) {
  LOCKSTEP_RETURN_IF_ERROR(use(device_));
  LOCKSTEP_ASSIGN_OR_RETURN(auto made, context_.connect(std::move(next)));
  return std::unique_ptr<DeviceCollective>(std::make_unique<OnDevice>(device_, std::move(made)));
}

}  // namespace lockstep
