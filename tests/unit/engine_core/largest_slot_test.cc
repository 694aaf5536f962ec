// The largest slot by planted figures, and where the figures come from.
#include "worker/engine/largest_slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"
#include "worker/engine/memory_meter.h"

namespace lockstep {
namespace {

// A step takes `fixed` bytes and `each` a sample; what was tried is remembered.
struct Step {
  uint64_t fixed = 0;
  uint64_t each = 0;
  uint64_t there = ~uint64_t{0};  // beyond, the device has no more
  std::vector<uint64_t> tried = {};

  SlotTrial trial() {
    return [this](uint64_t samples) -> Result<std::optional<uint64_t>> {
      tried.push_back(samples);
      const uint64_t bytes = fixed + samples * each;
      return bytes > there ? std::nullopt : std::optional(bytes);
    };
  }
};

using Sizes = std::vector<uint64_t>;

TEST(LargestSlot, IsTheLastPowerOfTwoThatFits) {
  Step step{.fixed = 100, .each = 50};
  // 80 % of 5,000 are 4,000: 64 samples take 3,300; twice that is more.
  EXPECT_EQ(*find_largest_slot({1, 1'000, 5'000, 0}, step.trial()), 64u);
  EXPECT_EQ(step.tried, (Sizes{1, 2, 4, 8, 16, 32, 64}));
}

TEST(LargestSlot, WhatIsReservedIsNotForSteps) {
  Step step{.fixed = 100, .each = 50};
  EXPECT_EQ(*find_largest_slot({1, 1'000, 5'000, 1'000}, step.trial()), 32u);
  EXPECT_EQ(step.tried.back(), 32u);
}

TEST(LargestSlot, ASizeThatMayNotFitIsNeverTried) {
  Step step{.fixed = 0, .each = 100};
  EXPECT_EQ(*find_largest_slot({1, 1'000, 1'900, 0}, step.trial()), 8u);  // of 1,520
  EXPECT_EQ(step.tried, (Sizes{1, 2, 4, 8}));
}

TEST(LargestSlot, AtMostTheBoundWhichIsAnyNumber) {
  Step step{.fixed = 1, .each = 1};
  EXPECT_EQ(*find_largest_slot({1, 150, 1 << 30, 0}, step.trial()), 128u);
  EXPECT_EQ(*find_largest_slot({1, 128, 1 << 30, 0}, step.trial()), 128u);
  EXPECT_EQ(*find_largest_slot({1, 127, 1 << 30, 0}, step.trial()), 64u);
}

TEST(LargestSlot, BeginsWithTheSmallestThatTheModelTakes) {
  Step step{.fixed = 1, .each = 1};
  EXPECT_EQ(*find_largest_slot({2, 7, 1 << 30, 0}, step.trial()), 4u);
  EXPECT_EQ(step.tried, (Sizes{2, 4}));
}

TEST(LargestSlot, ADeviceThatHasNoMoreEndsTheSearch) {
  Step step{.fixed = 10, .each = 1, .there = 20};  // less than it said to be free
  EXPECT_EQ(*find_largest_slot({1, 1'000, 1'000, 0}, step.trial()), 8u);
}

TEST(LargestSlot, NoneThatFitsIsRefusedWithTheFigures) {
  Step step{.fixed = 100 * kMib, .each = kMib};
  const auto found = find_largest_slot({1, 8, 150 * kMib, 60 * kMib}, step.trial());
  EXPECT_THAT(found, FailsWith(Code::kConfig, Names("101 MiB", "150 MiB", "60 MiB"),
                               Advises("train.global_batch")));
}

TEST(LargestSlot, AnErrorOfATrialIsTheErrorOfTheSearch) {
  const auto found = find_largest_slot({1, 8, 1'000, 0}, [](uint64_t) {
    return Result<std::optional<uint64_t>>(Status(Code::kBadData, "sample 3 is damaged"));
  });
  EXPECT_EQ(found.status().code(), Code::kBadData);
}

// Files as the kernel writes them.
class AvailableMemory : public ::testing::Test {
 protected:
  AvailableMemory() {
    put("proc/meminfo", "MemTotal:  8000 kB\nMemFree:  100 kB\nMemAvailable:    4000 kB\n");
  }

  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
  }
  void group(const std::string& path, const std::string& limit, uint64_t usage, uint64_t idle) {
    put("cgroup" + path + "/memory.max", limit + "\n");
    put("cgroup" + path + "/memory.current", std::to_string(usage) + "\n");
    put("cgroup" + path + "/memory.stat",
        "anon 5\nactive_file 9\ninactive_file " + std::to_string(idle) + "\n");
  }
  HostMemoryFiles files() const { return {root_ + "/proc", root_ + "/cgroup"}; }
  uint64_t available() const { return *available_memory(files()); }

  TemporaryDirectory temporary_;
  std::string root_ = temporary_.path();
};

TEST_F(AvailableMemory, IsWhatTheMachineHasWhereNoGroupSetsALimit) {
  EXPECT_EQ(available(), 4000u * 1024);
  put("proc/self/cgroup", "0::/job/worker\n");
  group("/job/worker", "max", 1000, 0);
  EXPECT_EQ(available(), 4000u * 1024);
}

TEST_F(AvailableMemory, IsTheRoomOfTheTightestGroupAbove) {
  put("proc/self/cgroup", "0::/job/worker\n");
  group("/job/worker", "900000", 100000, 50000);
  EXPECT_EQ(available(), 850000u);  // idle files go when memory is asked for
  group("/job", "700000", 200000, 0);
  EXPECT_EQ(available(), 500000u);
  group("", "700000", 800000, 0);
  EXPECT_EQ(available(), 0u);
}

TEST_F(AvailableMemory, AGroupWhoseNameIsNotOfThisContainerIsItsRoot) {
  put("proc/self/cgroup", "0::/kubepods/pod7/abc\n");
  group("", "300000", 100000, 0);
  EXPECT_EQ(available(), 200000u);
}

TEST_F(AvailableMemory, GroupsOfVersionOneAreReadToo) {
  put("proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/a\n0::/\n");
  put("cgroup/memory/a/memory.limit_in_bytes", "400000\n");
  put("cgroup/memory/a/memory.usage_in_bytes", "150000\n");
  put("cgroup/memory/a/memory.stat", "cache 9\ntotal_inactive_file 50000\n");
  EXPECT_EQ(available(), 300000u);
}

TEST_F(AvailableMemory, AMeterSharesItAndCountsThePeakFromWhereItBegan) {
  put("proc/self/status", "VmPeak: 9 kB\nVmHWM:\t 700 kB\nVmRSS:\t 600 kB\n");
  const auto meter = make_host_meter(4, files());
  EXPECT_EQ(*meter->begin(), 1000u * 1024);
  put("proc/self/status", "VmHWM:\t 850 kB\nVmRSS:\t 610 kB\n");
  EXPECT_EQ(*meter->taken(), 250u * 1024);
}

TEST_F(AvailableMemory, ASystemThatDoesNotSayIsAnError) {
  put("proc/meminfo", "MemTotal: 8000 kB\n");
  EXPECT_EQ(available_memory(files()).status().code(), Code::kInternal);
  put("proc/meminfo", "MemAvailable: 8000 kB\n");
  EXPECT_EQ(make_host_meter(1, files())->begin().status().code(), Code::kInternal);
}

TEST(LargestSlot, NcclsBuffersAndStagesAreReservedWhereThereArePeers) {
  constexpr uint64_t kBucket = 1 << 20;
  EXPECT_EQ(nccl_bytes({1, 1}, 64, kBucket), 0u);
  EXPECT_GE(nccl_bytes({2, 2}, 2, kBucket), limits::kNcclBytes + limits::kNcclPeerBytes + kBucket);
  // One more on this node, one more on another.
  EXPECT_EQ(nccl_bytes({9, 8}, 8, kBucket) - nccl_bytes({8, 7}, 8, kBucket),
            limits::kNcclPeerBytes);
  EXPECT_EQ(nccl_bytes({9, 8}, 8, kBucket) - nccl_bytes({8, 8}, 8, kBucket),
            limits::kNcclFarPeerBytes);
  EXPECT_GT(nccl_bytes({8, 8}, 64, kBucket), nccl_bytes({8, 8}, 8, kBucket));  // more partials
  // Around a ring only the neighbours.
  EXPECT_EQ(nccl_bytes({8, 8, false}, 8, kBucket) - nccl_bytes({7, 7, false}, 8, kBucket),
            limits::kNcclFarPeerBytes);
  EXPECT_LE(limits::kNcclBytes + 7 * limits::kNcclPeerBytes, nccl_bytes({8, 8}, 1, kBucket));
}

TEST(LargestSlot, ABucketMayHoldATensorMoreThanItsSize) {
  const std::vector<uint64_t> bounds = {0, 16, 1'040, 1'056};
  EXPECT_EQ(largest_bucket(bounds, 1'000), 1'000u + 1'024 * sizeof(float));
  EXPECT_EQ(largest_bucket({}, 1'000), 1'000u);
}

}  // namespace
}  // namespace lockstep
