#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "deploy/preflight/preflight.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::preflight {
namespace {

using ::testing::ElementsAre;

TEST(PreflightDoors, EveryRankIsReachedFromOthersAndFromAllTheFirst) {
  EXPECT_THAT(doors_of(0, 1), ElementsAre(0));
  EXPECT_THAT(doors_of(1, 2), ElementsAre(0));
  EXPECT_THAT(doors_of(5, 8), ElementsAre(0, 1, 6, 7));
  for (uint32_t size : {2u, 3u, 7u, 64u}) {
    std::vector<uint32_t> reached(size);
    for (uint32_t rank = 0; rank < size; ++rank)
      for (const uint32_t door : doors_of(rank, size)) reached.at(door) += door != rank;
    for (const uint32_t count : reached) EXPECT_GE(count, 1u) << size;
    EXPECT_EQ(reached[0], size - 1);
  }
}

class Preflights : public ::testing::Test {
 protected:
  PreflightOptions options_of(uint32_t rank, uint32_t size) const {
    PreflightOptions options;
    options.run_dir = run_dir_;
    options.launch_id = "test/1";
    options.rank = rank;
    options.size = size;
    options.host = "host-" + std::to_string(rank);
    options.version = "v1";
    return options;
  }

  // The exit codes of ranks that run at the same time.
  static std::vector<int> codes_of(const std::vector<PreflightOptions>& ranks) {
    std::vector<int> codes(ranks.size(), -1);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ranks.size(); ++i)
      threads.emplace_back([&, i] {
        const auto code = run(ranks[i]);
        codes[i] = code.is_ok() ? *code : -2;
      });
    for (std::thread& thread : threads) thread.join();
    return codes;
  }

  TemporaryDirectory temporary_;
  std::string run_dir_ = temporary_.path();
};

TEST_F(Preflights, RanksThatReachEachOtherAreReadyAndNothingIsLeft) {
  EXPECT_THAT(codes_of({options_of(0, 3), options_of(1, 3), options_of(2, 3)}),
              ElementsAre(0, 0, 0));
  EXPECT_TRUE(std::filesystem::is_empty(run_dir_));
}

TEST_F(Preflights, OneOfAnotherVersionMakesAllOfThemUnfit) {
  PreflightOptions other = options_of(1, 2);
  other.version = "v2";
  EXPECT_THAT(codes_of({options_of(0, 2), other}), ElementsAre(78, 78));
  EXPECT_TRUE(std::filesystem::is_empty(run_dir_));
}

TEST_F(Preflights, ARankThatNeverComesIsMissed) {
  PreflightOptions alone = options_of(0, 2);
  alone.wait_ms = 100;
  EXPECT_THAT(codes_of({alone}), ElementsAre(78));
}

TEST_F(Preflights, ARankThatSeesAnotherDirectorySaysSo) {
  PreflightOptions lost = options_of(1, 2);
  lost.wait_ms = 100;
  EXPECT_THAT(codes_of({lost}), ElementsAre(78));
  EXPECT_TRUE(std::filesystem::is_empty(run_dir_)) << "it is rank 0 who makes the folder";
}

TEST_F(Preflights, WhatIsLeftOfOneThatWasKilledIsNotInTheWay) {
  std::filesystem::create_directory(run_dir_ + "/preflight-test-1.tmp");
  std::filesystem::create_directory(run_dir_ + "/preflight-test-1.tmp/lock");
  EXPECT_THAT(codes_of({options_of(0, 1)}), ElementsAre(0));
  EXPECT_TRUE(std::filesystem::is_empty(run_dir_));
}

}  // namespace
}  // namespace lockstep::preflight
