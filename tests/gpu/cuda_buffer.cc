#include "tests/gpu/cuda_buffer.h"

#include <cuda_runtime_api.h>

#include "comm/base/check.h"
#include "comm/base/gpu/cuda_status.h"

namespace lockstep::testing {
namespace {

constexpr uint64_t kAlignedElements = 64;  // 256 bytes

uint64_t stride(const BufferLayout& layout) {
  return (layout.elements + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
}

class CudaBuffer final : public GradientBuffer {
 public:
  CudaBuffer(const BufferLayout& layout, uint32_t regions, float* data)
      : layout_(layout), regions_(regions), data_(data) {}
  ~CudaBuffer() override { cuda::drop_error(cudaFree(data_)); }

  const BufferLayout& layout() const override { return layout_; }
  uint32_t regions() const override { return regions_; }
  float* partial(uint32_t region) override {
    LOCKSTEP_CHECK(region < regions_, "no such region");
    return data_ + (region + 1) * stride(layout_);
  }
  float* result() override { return data_; }

 private:
  const BufferLayout layout_;
  const uint32_t regions_;
  float* const data_;
};

}  // namespace

Result<std::unique_ptr<GradientBuffer>> make_cuda_buffer(const BufferLayout& layout,
                                                         uint32_t regions) {
  const size_t bytes = (uint64_t{regions} + 1) * stride(layout) * sizeof(float);
  void* data = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(
      cuda::cuda_status(cudaMalloc(&data, bytes), "allocate the gradient buffer"));
  auto buffer = std::make_unique<CudaBuffer>(layout, regions, static_cast<float*>(data));
  LOCKSTEP_RETURN_IF_ERROR(
      cuda::cuda_status(cudaMemset(data, 0, bytes), "clear the gradient buffer"));
  return std::unique_ptr<GradientBuffer>(std::move(buffer));
}

}  // namespace lockstep::testing
