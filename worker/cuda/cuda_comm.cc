#include "worker/cuda/cuda_comm.h"

#include <utility>

#include "comm/base/cuda_status.h"

namespace lockstep {
namespace {

// LibTorch's CUDA library has brought it.
constexpr char kNcclLibrary[] = "libnccl.so.2";

Status use(int device) {
  return cuda::cuda_status(cudaSetDevice(device), "use the device");
}

// The same Collective, from any thread.
class OnDevice final : public DeviceCollective {
 public:
  OnDevice(int device, std::unique_ptr<DeviceCollective> of)
      : device_(device), of_(std::move(of)) {}

  uint32_t rank() const override { return of_->rank(); }
  uint32_t world_size() const override { return of_->world_size(); }
  Status begin_step(const Tag& tag, const StepMerge& merge) override {
    LOCKSTEP_RETURN_IF_ERROR(use(device_));
    return of_->begin_step(tag, merge);
  }
  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    LOCKSTEP_RETURN_IF_ERROR(use(device_));
    return of_->all_reduce(tag, range);
  }
  Status wait_for_sums() override {
    LOCKSTEP_RETURN_IF_ERROR(use(device_));
    return of_->wait_for_sums();
  }
  const float* reduced() const override { return of_->reduced(); }
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override {
    return of_->broadcast(tag, data, root);
  }
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    return of_->all_gather(tag, mine, all);
  }
  Status barrier(const Tag& tag) override { return of_->barrier(tag); }
  void check_next_sum(uint32_t owner) override { of_->check_next_sum(owner); }
  std::optional<uint64_t> checked_sum() const override { return of_->checked_sum(); }
  void abort() noexcept override { of_->abort(); }
  int64_t broken_rank() const override { return of_->broken_rank(); }

 private:
  const int device_;
  const std::unique_ptr<DeviceCollective> of_;
};

}  // namespace

Result<std::unique_ptr<CudaComm>> CudaComm::open(int device, cudaStream_t compute, uint64_t* gate,
                                                 GradientBuffer& buffer, bool is_exact) {
  LOCKSTEP_RETURN_IF_ERROR(use(device));
  LOCKSTEP_ASSIGN_OR_RETURN(nccl::NcclApi api, nccl::open_nccl(kNcclLibrary));
  LOCKSTEP_ASSIGN_OR_RETURN(auto queue, nccl::CudaQueue::create(compute, gate));
  return std::unique_ptr<CudaComm>(new CudaComm(device, api, std::move(queue), buffer, is_exact));
}

CudaComm::CudaComm(int device, nccl::NcclApi api, std::unique_ptr<nccl::CudaQueue> queue,
                   GradientBuffer& buffer, bool is_exact)
    : device_(device),
      queue_(std::move(queue)),
      context_(api, clock_, *queue_, buffer,
               is_exact ? nccl::Numerics::kExact : nccl::Numerics::kFast) {}

CudaComm::~CudaComm() {
  (void)use(device_);
}

Result<std::unique_ptr<DeviceCollective>> CudaComm::connect(DeviceGeneration next) {
  LOCKSTEP_RETURN_IF_ERROR(use(device_));
  LOCKSTEP_ASSIGN_OR_RETURN(auto made, context_.connect(std::move(next)));
  return std::unique_ptr<DeviceCollective>(std::make_unique<OnDevice>(device_, std::move(made)));
}

}  // namespace lockstep
