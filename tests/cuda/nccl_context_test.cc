// How communicators come and go from generation to generation.
#include "comm/collectives/nccl/nccl_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cuda/nccl_world.h"

namespace lockstep::nccl {
namespace {

using ::testing::Contains;
using testing::FakeNccl;
using testing::NcclWorker;
using testing::NcclWorkers;
using ::testing::Not;

constexpr BufferLayout kLayout{.gradients = 64, .statistics = 64, .elements = 80};

class NcclContextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeNccl::get().reset();
    for (MemberId id = 1; id <= 4; ++id)
      workers.push_back(std::make_unique<NcclWorker>(id, kLayout, 1, Numerics::kExact));
  }

  void start(Generation generation, const std::vector<size_t>& who) {
    std::vector<NcclWorker*> chosen;
    for (const size_t w : who) chosen.push_back(workers[w].get());
    testing::start(chosen, generation, std::vector<uint32_t>(who.size(), 0));
  }

  // Ends all contexts, and with them their side threads.
  std::vector<std::string> log_of_all() {
    workers.clear();
    return FakeNccl::get().log();
  }

  NcclWorkers workers;
};

TEST_F(NcclContextTest, RegistersEveryRegionAndEndsInOrder) {
  start(1, {0});
  const std::vector<std::string> expected = {
      "rank 0: init id 1",  "rank 0: register", "rank 0: register", "rank 0: deregister",
      "rank 0: deregister", "rank 0: finalize", "rank 0: destroy"};
  EXPECT_EQ(log_of_all(), expected);
}

TEST_F(NcclContextTest, SurvivorsOfADeathShrinkAndEndTheOldOneOnlyThen) {
  start(1, {0, 1, 2});
  for (const size_t w : {0, 2}) workers[w]->collective->abort();
  EXPECT_THAT(FakeNccl::get().log(), Not(Contains("rank 0: abort")));
  start(2, {0, 2});
  const auto log = log_of_all();
  EXPECT_THAT(log, Contains("rank 0: shrink abort 1"));
  EXPECT_THAT(log, Contains("rank 2: shrink abort 1"));
  EXPECT_THAT(log, Contains("rank 2: abort"));  // the old one, by its old rank
  EXPECT_THAT(log, Not(Contains("rank 0: init id 2")));
}

TEST_F(NcclContextTest, APlannedLeaveShrinksWithoutAbort) {
  start(1, {0, 1, 2});
  start(2, {0, 1});
  const auto log = log_of_all();
  EXPECT_THAT(log, Contains("rank 1: shrink 2"));
  EXPECT_EQ(std::count(log.begin(), log.end(), "rank 0: finalize"), 2);
}

TEST_F(NcclContextTest, ANewMemberMakesAllBeginFromANewId) {
  start(1, {0, 1});
  start(2, {0, 1, 3});
  const auto log = log_of_all();
  EXPECT_THAT(log, Contains("rank 0: init id 2"));
  EXPECT_THAT(log, Contains("rank 2: init id 2"));
  EXPECT_EQ(std::count_if(log.begin(), log.end(),
                          [](const std::string& l) { return l.find("shrink") != l.npos; }),
            0);
}

// Worker 2 was away in generation 2: it cannot shrink what the others have.
TEST_F(NcclContextTest, OneThatLostTheOldCommunicatorMakesAllBeginFromANewId) {
  start(1, {0, 1, 2});
  start(2, {0, 1});
  start(3, {0, 2});
  const auto log = log_of_all();
  EXPECT_THAT(log, Contains("rank 0: init id 2"));
  EXPECT_THAT(log, Contains("rank 1: init id 2"));
}

TEST(LeftOut, AreTheRanksThatAreGoneIfTheRestKeptTheirOrder) {
  const std::vector<MemberId> before = {7, 8, 9, 10};
  EXPECT_EQ(left_out(before, {7, 10}), (std::vector<int>{1, 2}));
  EXPECT_EQ(left_out(before, {8, 9, 10}), (std::vector<int>{0}));
  EXPECT_EQ(left_out(before, before), std::nullopt);
  EXPECT_EQ(left_out(before, {9, 8}), std::nullopt);
  EXPECT_EQ(left_out(before, {7, 11}), std::nullopt);
}

}  // namespace
}  // namespace lockstep::nccl
