// Every launcher links. On a machine without a usable device it says what is missing.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/gpu/cuda_status.h"
#include "comm/collectives/nccl/cuda_queue.h"
#include "comm/collectives/nccl/queue_kernels.h"
#include "tests/support/fails_with.h"
#include "worker/cuda/kernels/apply_launch.h"
#include "worker/cuda/kernels/layer_launch.h"
#include "worker/cuda/kernels/merge_launch.h"

namespace lockstep::cuda {
namespace {

class Launch : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
      GTEST_SKIP() << "this machine has a GPU; what runs there is tested in tests/gpu";
  }

  template <typename Rule>
  static Status update() {
    return launch_update(nullptr, nullptr, 1, {}, GroupFactors<Rule>{}, /*keeps_zeros=*/false,
                         nullptr);
  }

  template <typename T>
  static void expect_refused_layers() {
    expect_refused(launch_layer_norm<T>({}, 1, 1, nullptr));
    expect_refused(launch_layer_norm_backward<T>({}, 1, 1, {}, nullptr));
    expect_refused(launch_bias_gelu<T>({}, 1, 1, nullptr));
    expect_refused(launch_bias_gelu_backward<T>({}, 1, 1, {}, nullptr));
    expect_refused(launch_dropout<T>({.elements = 1}, nullptr));
    expect_refused(launch_cross_entropy<T>({}, 1, nullptr));
    expect_refused(launch_column_sums<T>(nullptr, 1, 1, nullptr, nullptr, nullptr));
  }

  static void expect_refused(const Status& status) {
    EXPECT_THAT(status, FailsWith(Code::kConfig, Says("GPU")));
  }
};

TEST_F(Launch, OfTheUpdateWithoutADeviceIsAConfigurationError) {
  for (const Status& status :
       {update<Sgd>(), update<SgdMomentum>(), update<SgdNesterov>(), update<Adam>(),
        update<Nadam>(), update<Rmsprop<false, false>>(), update<Rmsprop<false, true>>(),
        update<Rmsprop<true, false>>(), update<Rmsprop<true, true>>(), update<Adagrad>(),
        update<Adadelta>()})
    expect_refused(status);
}

TEST_F(Launch, OfTheGateWithoutADeviceIsAConfigurationError) {
  expect_refused(launch_block_totals({.count = 1}, nullptr));
  expect_refused(launch_decide(nullptr, {}, nullptr, 1, nullptr, nullptr));
  expect_refused(launch_statistics(nullptr, nullptr, 1, 1, nullptr, nullptr));
  expect_refused(launch_average(nullptr, nullptr, 1, 0.1f, nullptr, nullptr));
  expect_refused(launch_close(nullptr, nullptr, nullptr));
  expect_refused(launch_add(nullptr, nullptr, 16, nullptr));
}

TEST_F(Launch, OfTheLayersWithoutADeviceIsAConfigurationError) {
  expect_refused(launch_images({.samples = 1, .channels = 1, .plane = 1}, nullptr));
  expect_refused_layers<float>();
  expect_refused_layers<Bf16>();
  expect_refused(launch_fp8_cast({.rows = 1, .columns = 16, .padded_rows = 16}, nullptr));
}

TEST(LaunchFp8, TakesNoTensorOfAnotherSizeThanItsProductsDo) {
  EXPECT_TRUE(launch_fp8_cast({}, nullptr).is_ok());
  for (const Fp8Cast& work : {Fp8Cast{.rows = 16, .columns = 24, .padded_rows = 16},
                              Fp8Cast{.rows = 15, .columns = 16, .padded_rows = 15}})
    EXPECT_EQ(launch_fp8_cast(work, nullptr).code(), Code::kInternal);
}

TEST_F(Launch, OfTheCommunicationStreamWithoutADeviceIsAConfigurationError) {
  nccl::DeviceSum sum;
  sum.elements = 1;
  expect_refused(nccl::launch_sum(sum, nullptr));
  expect_refused(nccl::CudaQueue::create({}).status());
}

TEST_F(Launch, OfNothingAsksForNoDevice) {
  EXPECT_TRUE(launch_block_totals({}, nullptr).is_ok());
  EXPECT_TRUE(launch_images({}, nullptr).is_ok());
  EXPECT_TRUE(launch_add(nullptr, nullptr, 0, nullptr).is_ok());
  EXPECT_TRUE(launch_layer_norm<float>({}, 0, 8, nullptr).is_ok());
}

TEST(CudaStatus, KeepsWhatWasTriedAndWhatCudaSays) {
  EXPECT_TRUE(cuda_status(cudaSuccess, "copy").is_ok());
  const Status status = cuda_status(cudaErrorIllegalAddress, "copy a batch");
  EXPECT_THAT(status, FailsWith(Code::kInternal, Names("copy a batch", "cudaErrorIllegalAddress")));
}

}  // namespace
}  // namespace lockstep::cuda
