// Tests which GPUs comm.backend nccl refuses, as the stand-in for NVIDIA's driver shows them.
#include "worker/process/open_devices.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"

namespace lockstep::testing {
namespace {

class OpenDevices : public ::testing::Test {
 protected:
  // Its name as a library is the driver's, so whoever opens the driver from now on gets it.
  void SetUp() override {
    ASSERT_NE(dlopen(LOCKSTEP_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
    ::setenv("FAKE_DRIVER_DEVICES", "2", 1);
    module_.opens = [this](GradientBuffer&,
                           DeviceCommOptions) -> Result<std::unique_ptr<DeviceComm>> {
      ++opened_;
      return Status(Code::kUnavailable, "no network here");
    };
  }
  void TearDown() override {
    ::unsetenv("FAKE_DRIVER_DEVICES");
    ::unsetenv("FAKE_DRIVER_MIG");
  }

  Result<std::unique_ptr<DeviceComm>> open(const std::string& backend, bool is_slice) {
    ::setenv("FAKE_DRIVER_MIG", is_slice ? "1" : "0", 1);
    wire::JobSpec job = small_job("mlp");
    job.mutable_comm()->set_backend(backend);
    const auto data = make_patterns(20);
    LoopbackWorld world(job, *data, even_runs(job.train().slots(), 1), 0, nullptr, {&module_});
    return open_devices({.job = job,
                         .module = module_,
                         .engine = world.engine(0),
                         .clock = clock_,
                         .logger = *logger_,
                         .gpu = 1,
                         .notes_directory = temporary_.path(),
                         .on_stuck = {}});
  }

  const TemporaryDirectory temporary_;
  const SystemClock clock_;
  const std::unique_ptr<Logger> logger_ = null_logger();
  PlainModule module_;
  int opened_ = 0;
};

TEST_F(OpenDevices, NcclRefusesAMigSliceByNameAndTakesAWholeGpu) {
  EXPECT_THAT(open("nccl", true).status(),
              FailsWith(Code::kConfig,
                        Names("0000:31:00.0", "02020202020202020202020202020202", "MIG slice"),
                        Advises("comm.backend: host", "nvidia-smi -mig 0")));
  EXPECT_EQ(opened_, 0);
  EXPECT_EQ(open("nccl", false).status().code(), Code::kUnavailable);
  EXPECT_EQ(opened_, 1);
}

TEST_F(OpenDevices, AutoTriesASliceAndHostOpensNothing) {
  const auto tried = open("auto", true);
  ASSERT_TRUE(tried.is_ok()) << tried.status().message();
  EXPECT_NE(*tried, nullptr);
  EXPECT_EQ(opened_, 1);
  const auto host = open("host", true);
  ASSERT_TRUE(host.is_ok());
  EXPECT_EQ(*host, nullptr);
  EXPECT_EQ(opened_, 1);
}

}  // namespace
}  // namespace lockstep::testing
