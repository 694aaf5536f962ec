// The communication stream, on a CUDA that keeps every error until a call takes it.
#include "comm/collectives/nccl/cuda_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>

#include "comm/base/gpu/cuda_status.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/support/fails_with.h"

namespace lockstep::nccl {
namespace {

using ::testing::ElementsAre;
using testing::FakeCuda;

class CudaQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeCuda::get().reset();
    queue = CudaQueue::create({&gradients, &compute}).value();
  }

  void TearDown() override {
    queue.reset();
    FakeCuda::get().reset();
  }

  // Launches a kernel, and checks the launch as our code does.
  Status launch() {
    DeviceSum sum;
    const float* leaves[] = {values.data()};
    const int32_t ops[] = {0};
    LOCKSTEP_RETURN_IF_ERROR(make_device_sum(ops, leaves, out.data(), out.size(), &sum));
    return queue->sum(sum);
  }
  // The queue's stream is busy until the promise is kept.
  void keep_busy(std::promise<void>& until) {
    static_cast<cudaStream_t>(queue->stream())->post([done = until.get_future().share()] {
      done.wait();
    });
  }
  void wait_for_end() {
    while (!queue->reached_end().value()) std::this_thread::yield();
  }

  std::array<float, 4> values = {1, 2, 3, 4};
  std::array<float, 4> out = {};
  CUstream_st gradients;
  CUstream_st compute;
  std::unique_ptr<CudaQueue> queue;
};

// A restarted worker would find the GPU taken again and again.
TEST_F(CudaQueueTest, AGpuThatAnotherProcessHasIsRefusedWithWhatToDo) {
  EXPECT_THAT(cuda::cuda_status(cudaErrorDevicesUnavailable, "use the device"),
              FailsWith(Code::kConfig, Names("EXCLUSIVE_PROCESS"), Advises("nvidia-smi")));
  EXPECT_THAT(cuda::cuda_status(cudaErrorMpsConnectionFailed, "use the device"),
              FailsWith(Code::kConfig, Names("MPS"), Advises("nvidia-cuda-mps-control")));
  EXPECT_EQ(cuda::cuda_status(cudaErrorMpsServerNotReady, "use the device").code(),
            Code::kInternal);
}

TEST_F(CudaQueueTest, ALookThatComesTooEarlyIsNotTheErrorOfTheNextKernel) {
  std::promise<void> goes_on;
  keep_busy(goes_on);
  ASSERT_TRUE(queue->mark_end().is_ok());
  const Result<bool> reached = queue->reached_end();
  ASSERT_TRUE(reached.is_ok());
  EXPECT_FALSE(*reached);
  const Status launched = launch();
  EXPECT_TRUE(launched.is_ok()) << launched.message();
  goes_on.set_value();
  ASSERT_TRUE(queue->mark_end().is_ok());
  wait_for_end();
  EXPECT_THAT(out, ElementsAre(1, 2, 3, 4));
}

TEST_F(CudaQueueTest, AnErrorThatWasToldIsNotTheErrorOfTheNextKernel) {
  FakeCuda::get().has_memory = false;
  EXPECT_THAT(queue->stage(64), FailsWith(Code::kInternal, Says("allocate the stage")));
  const Status launched = launch();
  EXPECT_TRUE(launched.is_ok()) << launched.message();
  FakeCuda::get().has_memory = true;
  EXPECT_NE(queue->stage(64).value(), nullptr);  // and not the null of the failed call before
}

TEST_F(CudaQueueTest, AnErrorThatNobodyNeedsIsNotTheErrorOfTheNextKernel) {
  FakeCuda::get().has_memory = false;
  void* memory = nullptr;
  cuda::drop_error(cudaMalloc(&memory, 4));
  EXPECT_TRUE(launch().is_ok());
}

TEST_F(CudaQueueTest, ComputeWaitsForTheQueueAndTheQueueForGradients) {
  std::promise<void> goes_on;
  std::vector<int> order;
  gradients.post([&, done = goes_on.get_future().share()] {
    done.wait();
    order.push_back(1);
  });
  ASSERT_TRUE(queue->follow_gradients().is_ok());
  static_cast<cudaStream_t>(queue->stream())->post([&] { order.push_back(2); });
  ASSERT_TRUE(queue->hold_compute().is_ok());
  compute.post([&] { order.push_back(3); });
  goes_on.set_value();
  compute.progress()->wait_for(compute.posted());
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_F(CudaQueueTest, GivesItsDeviceToAnyThread) {
  std::unique_ptr<CudaQueue> other;
  std::thread maker([&] {
    ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
    other = CudaQueue::create({&gradients, &compute}).value();
  });
  maker.join();
  std::thread user([&] {
    ASSERT_TRUE(other->use_device().is_ok());
    int device = -1;
    ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 2);
  });
  user.join();
}

}  // namespace
}  // namespace lockstep::nccl
