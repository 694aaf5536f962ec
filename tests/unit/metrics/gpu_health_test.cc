#include "metrics/node/gpu_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "metrics/node/gpu_xids.h"
#include "tests/unit/metrics/fake_gpus.h"

namespace lockstep::test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kHeat = limits::kGpuLastingLooks;

// One GPU that is well, and what the looks at it say.
class GpuHealthTest : public testing::Test {
 protected:
  void start(const std::string& library = FAKE_NVML_LIBRARY) {
    gpus_.say(kWell);
    const auto api = nvml::open_nvml(library);
    ASSERT_TRUE(api.is_ok());
    auto reader = GpuReader::start(*api, GpuReader::Detail::kHealth);
    ASSERT_TRUE(reader.is_ok());
    reader_.emplace(std::move(reader).value());
  }

  // Returns the verdict after so many looks while the GPU is well but for these lines. The stand-in
  // takes the first line of a key.
  GpuVerdict look(const std::string& lines, uint32_t times = 1) {
    gpus_.say(lines + kWell);
    for (uint32_t i = 0; i < times; ++i)
      history_ = judge(history_, {reader_->read().at(0), strangers_});
    return history_.verdict;
  }
  Fitness fitness(const std::string& lines, uint32_t times = 1) {
    return look(lines, times).fitness;
  }

  const std::string kWell =
      "power 350000\npower_limit 700000\ntemperature 60\nclock 1980\nlinks 262143\nfabric 3\n"
      "devices 1\n";
  FakeGpus gpus_;
  std::optional<GpuReader> reader_;
  std::optional<std::vector<uint32_t>> strangers_;
  GpuHistory history_;
};

struct Case {
  const char* name;
  const char* lines;
  Fitness at_first;
  uint32_t leaves_at;  // 0: never
  const char* word;    // of the reason
};

const std::vector<Case> kCases = {
    {"lost", "error.all 15\n", Fitness::kLeave, 1, "bus"},
    {"remap failed", "remap_failed 1\n", Fitness::kLeave, 1, "replace the GPU"},
    {"remap pending", "remap_pending 1\n", Fitness::kLeave, 1, "--gpu-reset"},
    {"ecc", "ecc 2\n", Fitness::kLeave, 1, "ECC"},
    {"xid of the GPU", "xids 1\nxid 119\n", Fitness::kLeave, 1, "XID 119"},
    {"xid to watch", "xids 1\nxid 92\n", Fitness::kWatch, 0, "XID 92"},
    {"xid of a program", "xids 1\nxid 31\n", Fitness::kOk, 0, ""},
    {"fabric failed", "fabric_error 3\n", Fitness::kLeave, 1, "nvidia-fabricmanager"},
    {"fabric in progress", "fabric 2\n", Fitness::kWatch, 3, "nvidia-fabricmanager"},
    {"hardware slowdown", "throttle 8\n", Fitness::kWatch, kHeat, "clocks"},
    {"hardware thermal", "throttle 64\n", Fitness::kWatch, kHeat, "clocks"},
    {"power brake", "throttle 128\n", Fitness::kWatch, kHeat, "power"},
    {"software thermal", "throttle 32\n", Fitness::kWatch, 0, "cooling"},
    {"power cap", "throttle 4\n", Fitness::kOk, 0, ""},
    {"clocks set, idle", "throttle 3\n", Fitness::kOk, 0, ""},
    {"not persistent", "persistence 0\n", Fitness::kWatch, 0, "nvidia-persistenced"},
};

TEST_F(GpuHealthTest, EachFindingHasItsVerdictAtTheFirstLookAndWhenItLasts) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    start();
    history_ = {};
    const GpuVerdict first = look(c.lines);
    EXPECT_EQ(first.fitness, c.at_first);
    EXPECT_THAT(first.reason, HasSubstr(c.word));
    constexpr uint32_t kLong = 20;
    for (uint32_t look = 2; look <= kLong; ++look) {
      const bool leaves = c.leaves_at != 0 && look >= c.leaves_at;
      EXPECT_EQ(fitness(c.lines), leaves ? Fitness::kLeave : c.at_first) << "look " << look;
    }
  }
}

TEST_F(GpuHealthTest, ALinkThatWasActiveAndIsDownTwiceInARowLeavesAndOneThatNeverWasDoesNot) {
  start();
  EXPECT_EQ(fitness("", 5), Fitness::kOk);
  history_ = {};
  const auto with_links = [&](const std::string& links) { return look("links " + links + "\n"); };
  EXPECT_EQ(with_links("15").fitness, Fitness::kOk);
  EXPECT_EQ(with_links("7").fitness, Fitness::kWatch);
  EXPECT_EQ(with_links("15").fitness, Fitness::kOk);
  EXPECT_EQ(with_links("7").fitness, Fitness::kWatch);
  const GpuVerdict leaves = with_links("7");
  EXPECT_EQ(leaves.fitness, Fitness::kLeave);
  EXPECT_THAT(leaves.reason, HasSubstr("NVLink"));
}

TEST_F(GpuHealthTest, AnotherProcessIsToldAndNobodyLeavesForIt) {
  start();
  strangers_ = std::vector<uint32_t>{4711};
  const GpuVerdict verdict = look("", 20);
  EXPECT_EQ(verdict.fitness, Fitness::kWatch);
  EXPECT_THAT(verdict.reason, HasSubstr("pid 4711"));
  strangers_ = std::vector<uint32_t>{};
  EXPECT_EQ(look(""), GpuVerdict());
}

TEST_F(GpuHealthTest, AGpuThatHasToLeaveIsFitOnlyAfterSomeLooksInARowWithoutAFinding) {
  start();
  EXPECT_EQ(fitness("remap_pending 1\n"), Fitness::kLeave);
  EXPECT_EQ(fitness("", limits::kGpuCleanLooks - 1), Fitness::kLeave);
  EXPECT_EQ(fitness("throttle 8\n"), Fitness::kLeave) << "heat alone would only be watched";
  const GpuVerdict still = look("", limits::kGpuCleanLooks - 1);
  EXPECT_EQ(still.fitness, Fitness::kLeave);
  EXPECT_THAT(still.reason, HasSubstr("--gpu-reset")) << "the reason stays";
  EXPECT_EQ(look(""), GpuVerdict());
}

TEST_F(GpuHealthTest, HeatThatComesAndGoesIsNeverMoreThanWatched) {
  start();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(fitness("throttle 64\n", kHeat - 1), Fitness::kWatch);
    EXPECT_EQ(fitness("throttle 0\n"), Fitness::kOk);
  }
}

TEST_F(GpuHealthTest, WhatAnOldDriverOrACardDoesNotTellIsNoFinding) {
  start(FAKE_OLD_NVML_LIBRARY);
  EXPECT_EQ(look("remap_pending 1\nremap_failed 1\npersistence 0\n", 20), GpuVerdict());
  start();
  constexpr char kUnsupported[] =
      "error.throttle 3\nthrottle 255\nerror.ecc 3\necc 9\nerror.remap_failed 3\nremap_failed 1\n"
      "error.links 3\nerror.fabric 3\nfabric_error 1\nerror.persistence 3\npersistence 0\n"
      "error.events 3\nerror.process 3\ndevices 1\n";
  gpus_.say(kUnsupported);
  for (int i = 0; i < 20; ++i) history_ = judge(history_, {reader_->read().at(0), {}});
  EXPECT_EQ(history_.verdict, GpuVerdict());
}

TEST(GpuXids, ResetsWhatProgramsCauseAndTheRestAreToldApart) {
  for (const uint64_t xid : {48, 64, 74, 79, 95, 119, 120})
    EXPECT_EQ(meaning_of_xid(xid), XidMeans::kReset) << xid;
  for (const uint64_t xid : {13, 31, 43, 45}) EXPECT_EQ(meaning_of_xid(xid), XidMeans::kProgram);
  for (const uint64_t xid : {63, 92, 94, 154, 999})
    EXPECT_EQ(meaning_of_xid(xid), XidMeans::kWatch) << xid;
}

}  // namespace
}  // namespace lockstep::test
