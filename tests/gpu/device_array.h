// Memory for tests of the GPU: failures of CUDA fail the test.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::testing {

// The work is done on return, but nothing else is: kernels on other streams may spin on.
inline void copy_bytes(void* to, const void* from, size_t bytes) {
  EXPECT_EQ(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);
}

// Values in device memory.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, size_ * sizeof(T)), cudaSuccess);
    write(values);
  }
  ~DeviceArray() { (void)cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() { return static_cast<T*>(data_); }
  void write(const std::vector<T>& values) { copy_bytes(data_, values.data(), size_ * sizeof(T)); }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    copy_bytes(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  const size_t size_;
  void* data_ = nullptr;
};

// One value in pinned memory, which the device reads and writes in place.
template <typename T>
class PinnedValue {
 public:
  PinnedValue() {
    EXPECT_EQ(cudaMallocHost(&data_, sizeof(T)), cudaSuccess);
    *get() = T{};
  }
  ~PinnedValue() { (void)cudaFreeHost(data_); }
  PinnedValue(const PinnedValue&) = delete;
  PinnedValue& operator=(const PinnedValue&) = delete;

  T* get() const { return static_cast<T*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace lockstep::testing
