#include "comm/base/gpu/gpu_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/base/gpu/visible_devices.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// fake_driver.cc says what these tell it to.
class FakeDriver : public ::testing::Test {
 protected:
  void says(const char* init_error, const char* devices) {
    ::setenv("FAKE_DRIVER_INIT_ERROR", init_error, 1);
    ::setenv("FAKE_DRIVER_DEVICES", devices, 1);
  }
  Result<uint32_t> count() { return count_gpus(LOCKSTEP_FAKE_DRIVER); }
};

TEST_F(FakeDriver, ThatShowsGpusIsCounted) {
  says("0", "3");
  ASSERT_TRUE(count().is_ok()) << count().status().message();
  EXPECT_EQ(*count(), 3u);
}

TEST_F(FakeDriver, ThatShowsNoneOrDoesNotStartIsNoGpu) {
  says("0", "0");
  EXPECT_EQ(count().status().code(), Code::kConfig);
  EXPECT_THAT(count().status().message(), HasSubstr("CUDA_VISIBLE_DEVICES"));
  says("100", "1");
  EXPECT_EQ(count().status().code(), Code::kConfig);
  EXPECT_THAT(count().status().message(), HasSubstr("CUDA error 100"));
}

TEST_F(FakeDriver, NamesEachGpuAndAWorkersNumberBeyondThemIsTakenModulo) {
  says("0", "3");
  const auto second = identify_gpu(1, LOCKSTEP_FAKE_DRIVER);
  ASSERT_TRUE(second.is_ok()) << second.status().message();
  EXPECT_EQ(second->pci, "0000:31:00.0");
  EXPECT_EQ(second->uuid, "02020202020202020202020202020202");
  EXPECT_EQ(identify_gpu(4, LOCKSTEP_FAKE_DRIVER)->pci, second->pci);
  says("0", "1");  // as CUDA_VISIBLE_DEVICES for each rank
  EXPECT_EQ(identify_gpu(7, LOCKSTEP_FAKE_DRIVER)->pci, "0000:30:00.0");
}

TEST_F(FakeDriver, TellsASliceOfAGpuFromAWholeOne) {
  says("0", "1");
  EXPECT_FALSE(identify_gpu(0, LOCKSTEP_FAKE_DRIVER)->is_slice);
  ::setenv("FAKE_DRIVER_MIG", "1", 1);
  EXPECT_TRUE(identify_gpu(0, LOCKSTEP_FAKE_DRIVER)->is_slice);
  ::unsetenv("FAKE_DRIVER_MIG");
}

// CUDA_ERROR_NO_DEVICE of cuInit, or no GPU in the list.
TEST_F(FakeDriver, WhereCudaVisibleDevicesHidesAllItsValueIsNamed) {
  for (const char* init_error : {"0", "100"}) {
    says(init_error, "0");
    ::setenv("CUDA_VISIBLE_DEVICES", "GPU-deadbeef", 1);
    EXPECT_THAT(count().status(), FailsWith(Code::kConfig, Names("GPU-deadbeef"),
                                            Advises("CUDA_VISIBLE_DEVICES", "nvidia-smi -L")));
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_THAT(count().status(), FailsWith(Code::kConfig, Says("not set")));
  }
}

TEST(VisibleDevices, AreReadAsCudaReadsThem) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  const auto seen = [](const char* value) { return read_visible_devices(value).seen; };
  EXPECT_THAT(seen("0,1"), ElementsAre("0", "1"));
  EXPECT_THAT(seen(" 1 , 2"), ElementsAre("1", "2"));
  EXPECT_THAT(seen("GPU-8932f937-d72c,GPU-1"), ElementsAre("GPU-8932f937-d72c", "GPU-1"));
  EXPECT_THAT(seen("0,GPU-8932f937"), ElementsAre("0", "GPU-8932f937")) << "mixed";
  EXPECT_THAT(seen("MIG-af8a,MIG-bb1c"), ElementsAre("MIG-af8a")) << "CUDA shows one slice";
  EXPECT_THAT(seen("MIG-GPU-8932f937/1/0"), ElementsAre("MIG-GPU-8932f937/1/0"));
  EXPECT_THAT(seen("0,MIG-af8a"), ElementsAre("0"));
  EXPECT_THAT(seen("0,-1,1"), ElementsAre("0")) << "those before what is no name";
  EXPECT_THAT(seen("0,,1"), ElementsAre("0"));
  EXPECT_THAT(seen("1,GPU-a,1,GPU-a"), ElementsAre("1", "GPU-a"));
  EXPECT_TRUE(read_visible_devices("1,GPU-a,1").has_twice);
  for (const char* none : {"", " ", "-1", "NoDevFiles", "none", "GPU-", "MIG-", ","})
    EXPECT_THAT(seen(none), IsEmpty()) << none;
}

TEST(VisibleDevices, ThatAreNoneSayWhy) {
  EXPECT_THAT(why_none_visible(""), HasSubstr("hides all"));
  EXPECT_THAT(why_none_visible("NoDevFiles"), HasSubstr("batch system"));
  EXPECT_THAT(why_none_visible("GPU-a,GPU-a"), HasSubstr("twice"));
  EXPECT_THAT(why_none_visible("GPU-\x1b[2J"), HasSubstr("GPU-\\x1b"));
}

// Numbers move when a GPU falls off the bus.
TEST_F(FakeDriver, AGpuIsFoundByItsUuidAndOneThatIsGoneIsNamed) {
  const std::string third = "03030303030303030303030303030303";
  says("0", "3");
  ASSERT_TRUE(find_gpu(third, LOCKSTEP_FAKE_DRIVER).is_ok());
  EXPECT_EQ(*find_gpu(third, LOCKSTEP_FAKE_DRIVER), 2u);
  ::setenv("FAKE_DRIVER_LOST", "0", 1);
  says("0", "2");
  ASSERT_TRUE(find_gpu(third, LOCKSTEP_FAKE_DRIVER).is_ok());
  EXPECT_EQ(*find_gpu(third, LOCKSTEP_FAKE_DRIVER), 1u);
  EXPECT_THAT(find_gpu("01010101010101010101010101010101", LOCKSTEP_FAKE_DRIVER),
              FailsWith(Code::kConfig, Names("01010101010101010101010101010101"),
                        Says("is gone", "2 others"), Advises("Xid", "agent")));
  ::unsetenv("FAKE_DRIVER_LOST");
}

TEST(GpuDriver, ThatIsNotInstalledOrIsAnotherLibraryIsNoGpu) {
  const Status missing = count_gpus("libnot-there.so.1").status();
  EXPECT_THAT(missing, FailsWith(Code::kConfig, HasSubstr("not installed")));
  const Status other = count_gpus("libm.so.6").status();
  EXPECT_THAT(other, FailsWith(Code::kConfig, Names("libm.so.6"), Says("driver")));
}

}  // namespace
}  // namespace lockstep
