#include "comm/environment/usable_cores.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "comm/base/file.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

class QuotaCores : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(temporary_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(replace_file(path.string(), text).is_ok());
  }
  std::optional<uint32_t> cores(const std::string& memberships) const {
    return quota_cores(memberships, temporary_.path());
  }

  TemporaryDirectory temporary_;
};

TEST_F(QuotaCores, WithoutAQuotaThereIsNone) {
  put("jobs/cpu.max", "max 100000\n");
  put("cpu/jobs/cpu.cfs_quota_us", "-1\n");
  put("cpu/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores("4:cpu:/jobs\n0::/jobs\n"), std::nullopt);
  EXPECT_EQ(cores("0::/\n"), std::nullopt);
  EXPECT_EQ(cores(""), std::nullopt);
  EXPECT_EQ(cores("nonsense"), std::nullopt);
}

TEST_F(QuotaCores, TheSmallestOnTheWayToTheTopCounts) {
  put("jobs/one/cpu.max", "800000 100000\n");
  put("jobs/cpu.max", "300000 100000\n");
  EXPECT_EQ(cores("0::/jobs/one\n"), 3u);
}

TEST_F(QuotaCores, AContainersOwnGroupIsTheTop) {
  put("cpu.max", "250000 100000\n");
  EXPECT_EQ(cores("0::/\n"), 2u) << "half a core holds up whoever waits for it";
  EXPECT_EQ(cores("0::/docker/4f2a\n"), 2u) << "a path of the host that is not here";
}

TEST_F(QuotaCores, AtLeastOneCoreIsThere) {
  put("cpu.max", "20000 100000\n");
  EXPECT_EQ(cores("0::/\n"), 1u);
}

TEST_F(QuotaCores, VersionOneHasItsControllersInOneDirectory) {
  put("cpu,cpuacct/jobs/cpu.cfs_quota_us", "400000\n");
  put("cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores("5:cpuset:/\n4:cpu,cpuacct:/jobs\n"), 4u);
  EXPECT_EQ(cores("5:cpuset:/jobs\n"), std::nullopt);
}

TEST(UsableCores, ThereIsOneAtLeast) {
  EXPECT_GE(usable_cores(), 1u);
}

}  // namespace
}  // namespace lockstep
