// Binding to the NUMA node of a GPU, on a sysfs of our own.
#include "comm/environment/numa_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;
using Cores = std::set<int>;

class ToySystem final : public NumaSystem {
 public:
  explicit ToySystem(std::string root) : root_(std::move(root)) {}
  std::string sysfs() const override { return root_; }
  int allowed_cores(std::set<int>* cores) const override {
    *cores = allowed;
    return 0;
  }
  int run_on(const std::set<int>& cores) override {
    if (error == 0) bound = cores;
    return error;
  }
  int has_own_policy(bool* has) const override {
    *has = has_policy;
    return 0;
  }
  int prefer_memory_of(int wanted) override {
    if (error == 0) node = wanted;
    return error;
  }

  Cores allowed = {0, 1, 2, 3, 4, 5, 6, 7};
  bool has_policy = false;
  int error = 0;
  Cores bound;
  int node = -1;

 private:
  const std::string root_;
};

class NumaBinding : public ::testing::Test {
 protected:
  void gpu(const std::string& name, const std::string& node, const std::string& cores) {
    const std::string device = temporary_.path() + "/bus/pci/devices/" + name;
    std::filesystem::create_directories(device);
    write_file(device + "/numa_node", node);
    write_file(device + "/local_cpulist", cores);
  }
  std::string bind(const std::string& pci = "0000:3B:00.0", bool keeps_cores = false) {
    return bind_to_numa_node({pci, keeps_cores}, system_);
  }
  void expect_nothing_bound() const {
    EXPECT_EQ(system_.bound, Cores());
    EXPECT_EQ(system_.node, -1);
  }

  TemporaryDirectory temporary_;
  ToySystem system_{temporary_.path()};
};

TEST_F(NumaBinding, TakesTheCoresAndTheMemoryOfTheGpusNode) {
  gpu("0000:3b:00.0", "1\n", "4-7\n");
  EXPECT_THAT(bind(), AllOf(HasSubstr("NUMA node 1"), HasSubstr("4 cores and memory")));
  EXPECT_EQ(system_.bound, (Cores{4, 5, 6, 7}));
  EXPECT_EQ(system_.node, 1);
}

TEST_F(NumaBinding, ASitesCoresAndPolicyStay) {
  gpu("0000:3b:00.0", "1\n", "4-7\n");
  system_.allowed = {2, 6};   // taskset
  system_.has_policy = true;  // numactl --interleave
  EXPECT_THAT(bind(), AllOf(HasSubstr("1 core;"), HasSubstr("the site")));
  EXPECT_EQ(system_.bound, Cores{6});
  EXPECT_EQ(system_.node, -1);
}

TEST_F(NumaBinding, WhereNoCoreWouldBeLeftNothingIsBound) {
  gpu("0000:3b:00.0", "1\n", "4-7\n");
  system_.allowed = {0, 1};
  EXPECT_THAT(bind(), AllOf(HasSubstr("not bound"), HasSubstr("none of its cores")));
  expect_nothing_bound();
}

TEST_F(NumaBinding, AOneNodeMachineAndAnUnknownGpuAreLeftAlone) {
  gpu("0000:3b:00.0", "-1\n", "0-7\n");
  EXPECT_THAT(bind(), AllOf(HasSubstr("not bound"), HasSubstr("0000:3B:00.0")));
  EXPECT_THAT(bind("0000:5e:00.0"), HasSubstr("not bound"));
  for (const char* text : {"", "one", "1 2", "99999", "0x1", "1,"}) {
    gpu("0000:3b:00.0", text, "0-7\n");
    EXPECT_THAT(bind(), HasSubstr("not bound")) << text;
  }
  gpu("0000:3b:00.0", "0\n", "all of them\n");
  EXPECT_THAT(bind(), HasSubstr("not bound"));
  for (const char* pci : {"", "../../../etc", "0000:3b/../00.0", "0000:3b:00..0", "gpu"})
    EXPECT_THAT(bind(pci), HasSubstr("not bound")) << pci;
  expect_nothing_bound();
}

TEST_F(NumaBinding, AWorkerThatIsAloneOnItsMachineKeepsAllCores) {
  gpu("0000:3b:00.0", "1\n", "4-7\n");
  EXPECT_EQ(bind("0000:3b:00.0", true), "NUMA node 1: memory");
  EXPECT_EQ(system_.bound, Cores());
  EXPECT_EQ(system_.node, 1);
}

TEST_F(NumaBinding, WhatTheKernelRefusesIsTold) {
  gpu("0000:3b:00.0", "1\n", "4-7\n");
  system_.error = EPERM;  // as in a container
  EXPECT_THAT(bind(), AllOf(HasSubstr("cores are not bound"), HasSubstr("memory is not bound"),
                            HasSubstr("errno 1")));
}

// The calls themselves, which change this thread: with the cores that it has.
TEST(NumaSystem, TheKernelTakesWhatItGave) {
  NumaSystem system;
  Cores before, after;
  ASSERT_EQ(system.allowed_cores(&before), 0);
  ASSERT_FALSE(before.empty());
  ASSERT_EQ(system.run_on({*before.begin()}), 0);
  ASSERT_EQ(system.allowed_cores(&after), 0);
  EXPECT_EQ(after, Cores{*before.begin()});
  ASSERT_EQ(system.run_on(before), 0);
  bool has = true;
  const int error = system.has_own_policy(&has);
  if (error == ENOSYS || error == EPERM) GTEST_SKIP() << "a kernel without memory policies";
  ASSERT_EQ(error, 0);
  EXPECT_FALSE(has);
  ASSERT_EQ(system.prefer_memory_of(0), 0);
  ASSERT_EQ(system.has_own_policy(&has), 0);
  EXPECT_TRUE(has);
}

TEST(CoreList, IsReadAsTheKernelWritesIt) {
  EXPECT_THAT(parse_core_list("0-2,8\n"), Optional(Cores{0, 1, 2, 8}));
  EXPECT_THAT(parse_core_list("5"), Optional(Cores{5}));
  EXPECT_THAT(parse_core_list("\n"), Optional(Cores()));
  for (const char* text :
       {"1-", "-1", "3-1", "1,,2", "1,", "a", "0-4294967296", "0-9999999", "1 2"})
    EXPECT_EQ(parse_core_list(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lockstep
