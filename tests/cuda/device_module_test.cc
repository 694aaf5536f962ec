// The GPU module itself, on a stand-in for CUDA's runtime: its device, memory, copies and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>

#include "tests/cuda/fake_cuda.h"
#include "tests/support/fails_with.h"
#include "worker/cuda/module_entry.h"

extern "C" lockstep::OpenedModule lockstep_open_device_module(uint32_t local_rank);

namespace lockstep::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

class DeviceModuleOnStandIns : public ::testing::Test {
 protected:
  void SetUp() override { FakeCuda::get().reset(); }
  void TearDown() override { FakeCuda::get().reset(); }

  static std::unique_ptr<DeviceModule> open(uint32_t local_rank) {
    const OpenedModule opened = lockstep_open_device_module(local_rank);
    const std::unique_ptr<Status> error(opened.error);
    EXPECT_EQ(error, nullptr) << error->message();
    return std::unique_ptr<DeviceModule>(opened.module);
  }
};

TEST_F(DeviceModuleOnStandIns, Fp8IsRefusedOnAGpuWithoutItByNumberAndName) {
  FakeCuda::get().gpus = 4;
  FakeCuda::get().gpu = {"NVIDIA A100-SXM4-80GB", 8, 0, 108};
  EXPECT_THAT(open(6)->check_fp8(), FailsWith(Code::kConfig,
                                              Names("train.precision=fp8", "GPU 2",
                                                    "NVIDIA A100-SXM4-80GB", "8.0", "8.9"),
                                              Advises("train.precision=bf16")));
  FakeCuda::get().gpu = {"NVIDIA L4", 8, 9, 58};
  EXPECT_TRUE(open(0)->check_fp8().is_ok());
  FakeCuda::get().gpu = {};
  EXPECT_TRUE(open(0)->check_fp8().is_ok());
}

TEST_F(DeviceModuleOnStandIns, ItsFingerprintNamesTheGpu) {
  EXPECT_THAT(open(0)->fingerprint(),
              ::testing::AllOf(Contains("gpu=NVIDIA H100 80GB HBM3"),
                               Contains("gpu_capability=9.0"), Contains("gpu_processors=132")));
}

TEST_F(DeviceModuleOnStandIns, AMachineWithoutAGpuIsAnErrorInWords) {
  FakeCuda::get().gpus = 0;
  const OpenedModule opened = lockstep_open_device_module(0);
  const std::unique_ptr<Status> error(opened.error);
  ASSERT_EQ(opened.module, nullptr);
  EXPECT_THAT(*error, FailsWith(Code::kConfig, Names("GPU")));
}

// These threads have never chosen a device: LibTorch's, the lanes', the reader's.
TEST_F(DeviceModuleOnStandIns, NoThreadMakesAContextOnAnotherGpu) {
  FakeCuda::get().gpus = 2;
  auto module = open(1);
  std::thread([&module] {
    std::vector<float> host(16, 1.5F);
    const auto memory = module->allocate(64);
    const auto pinned = module->allocate_host(64);
    ASSERT_TRUE(memory.is_ok() && pinned.is_ok());
    module->pin(host.data(), 64);
    EXPECT_TRUE(module->copy(DeviceLane::kCompute, *memory, host.data(), 64).is_ok());
    EXPECT_TRUE(module->mark(0, DeviceLane::kCompute).is_ok());
    EXPECT_TRUE(module->hold(DeviceLane::kGradients, 0).is_ok());
    EXPECT_TRUE(module->wait(0).is_ok());
    module->unpin(host.data());
    module->release(*pinned);
    module->release(*memory);
    module.reset();
  }).join();
  EXPECT_THAT(FakeCuda::get().contexts(), ElementsAre(1));
}

TEST_F(DeviceModuleOnStandIns, MemoryIsClearedAndCounted) {
  auto module = open(0);
  const auto memory = module->allocate(256);
  ASSERT_TRUE(memory.is_ok());
  EXPECT_EQ(module->allocated_bytes(), 256u);
  const std::vector<std::byte> zeros(256);
  EXPECT_EQ(std::memcmp(*memory, zeros.data(), 256), 0);
  module->release(*memory);
  EXPECT_EQ(module->allocated_bytes(), 0u);
}

TEST_F(DeviceModuleOnStandIns, ARefusedRequestForMemorySaysSoAndLeavesNoErrorBehind) {
  auto module = open(0);
  FakeCuda::get().has_memory = false;
  EXPECT_EQ(module->allocate(64).status().code(), Code::kNoMemory);
  EXPECT_EQ(module->allocate_host(64).status().code(), Code::kNoMemory);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the next launch would report it";
}

TEST_F(DeviceModuleOnStandIns, ALaneWaitsForAMarkOfAnotherAndTheHostForBoth) {
  auto module = open(0);
  const auto memory = module->allocate_host(4);
  ASSERT_TRUE(memory.is_ok());
  for (int round = 0; round < 20; ++round) {
    static_cast<cudaStream_t>(module->compute_stream())->post([] {  // a slow kernel
      for (int i = 0; i < 500; ++i) std::this_thread::yield();
    });
    const int from = round;
    int back = -1;
    ASSERT_TRUE(module->copy(DeviceLane::kCompute, *memory, &from, sizeof from).is_ok());
    ASSERT_TRUE(module->mark(0, DeviceLane::kCompute).is_ok());
    ASSERT_TRUE(module->hold(DeviceLane::kGradients, 0).is_ok());
    ASSERT_TRUE(module->copy(DeviceLane::kGradients, &back, *memory, sizeof back).is_ok());
    ASSERT_TRUE(module->mark(1, DeviceLane::kGradients).is_ok());
    ASSERT_TRUE(module->wait(1).is_ok());
    ASSERT_EQ(back, round);
  }
}

TEST_F(DeviceModuleOnStandIns, AStreamOfAnotherComesInOrderWithTheLanes) {
  auto module = open(0);
  const auto memory = module->allocate_host(sizeof(int));
  ASSERT_TRUE(memory.is_ok());
  int& there = *static_cast<int*>(*memory);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (int round = 0; round < 20; ++round) {
    stream->post([&there, round] {  // a slow kernel
      for (int i = 0; i < 500; ++i) std::this_thread::yield();
      there = round;
    });
    int back = -1, seen = -1;
    ASSERT_TRUE(module->follow(DeviceLane::kGradients, stream).is_ok());
    ASSERT_TRUE(module->copy(DeviceLane::kGradients, &back, &there, sizeof back).is_ok());
    ASSERT_TRUE(module->mark(0, DeviceLane::kGradients).is_ok());
    ASSERT_TRUE(module->lead(stream, 0).is_ok());
    stream->post([&] { seen = back; });
    ASSERT_TRUE(module->follow(DeviceLane::kCompute, stream).is_ok());
    ASSERT_TRUE(module->mark(1, DeviceLane::kCompute).is_ok());
    ASSERT_TRUE(module->wait(1).is_ok());
    ASSERT_EQ(back, round);
    ASSERT_EQ(seen, round);
  }
  EXPECT_TRUE(module->lead(stream, 2).is_ok()) << "a mark that was never set";
  FakeCuda::get().recorded = stream;
  for (const Status& status :
       {module->follow(DeviceLane::kGradients, stream), module->lead(stream, 0)})
    EXPECT_THAT(status, FailsWith(Code::kUsage, Says("CUDA graph"), Advises("run.backward()")));
  FakeCuda::get().recorded = nullptr;
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace lockstep::testing
