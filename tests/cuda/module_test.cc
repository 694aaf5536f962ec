// liblockstep-cuda.so as the worker loads it: by its one name. On a machine without a GPU it gives
// an error in words.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "worker/cuda/module_entry.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(DeviceModule, OpensOnAGpuAndElseSaysWhatIsMissing) {
  void* library = dlopen(LOCKSTEP_DEVICE_MODULE, RTLD_NOW | RTLD_LOCAL);
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

}  // namespace
}  // namespace lockstep
