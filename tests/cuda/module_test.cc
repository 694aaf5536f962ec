// liblockstep-cuda.so as the worker and the package load it: by its one name. On a machine without
// a GPU it gives an error in words. The one for a wheel brings its CUDA runtime along.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "worker/cuda/module_entry.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class AModule : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Both, AModule,
                         testing::Values(LOCKSTEP_DEVICE_MODULE, LOCKSTEP_WHEEL_MODULE));

TEST_P(AModule, OpensOnAGpuAndElseSaysWhatIsMissing) {
  void* library = dlopen(GetParam(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto open = reinterpret_cast<OpenDeviceModule>(dlsym(library, kDeviceModuleEntry));
  ASSERT_NE(open, nullptr) << dlerror();
  const OpenedModule opened = open(/*local_rank=*/5);
  EXPECT_EQ(opened.version, kDeviceModuleVersion);
  const std::unique_ptr<DeviceModule> module(opened.module);
  const std::unique_ptr<Status> error(opened.error);
  ASSERT_NE(module == nullptr, error == nullptr);
  if (module) {
    EXPECT_THAT(module->torch_device(), HasSubstr("cuda:"));
  } else {
    EXPECT_EQ(error->code(), Code::kConfig);
    EXPECT_THAT(error->message(), HasSubstr("driver for CUDA 13"));
  }
}

TEST(WheelModule, NeedsNoCudaRuntimeOfOthers) {
  ASSERT_EQ(dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD), nullptr) << "loaded before";
  ASSERT_NE(dlopen(LOCKSTEP_WHEEL_MODULE, RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
  EXPECT_EQ(dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
}  // namespace lockstep
