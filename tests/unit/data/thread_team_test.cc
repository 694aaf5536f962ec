#include "data/base/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace lockstep::data {
namespace {

std::unique_ptr<ThreadTeam> team_of(uint32_t threads) {
  return std::move(ThreadTeam::start(threads, "test")).value();
}

TEST(ThreadTeam, DoesEveryPartOnce) {
  for (const uint32_t threads : {1U, 2U, 7U}) {
    const auto team = team_of(threads);
    ASSERT_EQ(team->threads(), threads);
    for (const uint64_t parts : {0U, 1U, 5U, 1'000U}) {
      std::vector<std::atomic<int>> done(parts);
      ASSERT_TRUE(team->run(parts,
                            [&](uint32_t thread, uint64_t i) {
                              EXPECT_LT(thread, threads);
                              ++done[i];
                              return Status::ok();
                            })
                      .is_ok());
      for (const auto& times : done) ASSERT_EQ(times.load(), 1);
    }
  }
}

// Each part waits until all have begun: with fewer threads at work than parts it would never end.
TEST(ThreadTeam, PartsAreDoneAtTheSameTime) {
  const auto team = team_of(4);
  std::atomic<int> begun{0};
  std::set<std::thread::id> seen;
  std::mutex mutex;
  ASSERT_TRUE(team->run(4,
                        [&](uint32_t, uint64_t) {
                          ++begun;
                          while (begun.load() < 4) std::this_thread::yield();
                          const std::lock_guard lock(mutex);
                          seen.insert(std::this_thread::get_id());
                          return Status::ok();
                        })
                  .is_ok());
  EXPECT_EQ(seen.size(), 4U);
}

TEST(ThreadTeam, BecomesLargerAndSmaller) {
  const auto team = team_of(1);
  for (const uint32_t threads : {3U, 1U, 7U, 2U, 2U, 4U}) {
    ASSERT_TRUE(team->resize(threads).is_ok());
    ASSERT_EQ(team->threads(), threads);
    for (int round = 0; round < 20; ++round) {
      std::atomic<uint32_t> begun{0};
      // As many parts as threads, each of which waits for all of them.
      ASSERT_TRUE(team->run(threads,
                            [&](uint32_t thread, uint64_t) {
                              EXPECT_LT(thread, threads);
                              ++begun;
                              while (begun.load() < threads) std::this_thread::yield();
                              return Status::ok();
                            })
                      .is_ok());
      ASSERT_EQ(begun.load(), threads);
    }
  }
}

TEST(ThreadTeam, SaysTheLowestPartThatFailed) {
  for (int round = 0; round < 50; ++round) {
    const auto team = team_of(4);
    std::atomic<uint64_t> begun{0};
    const Status status = team->run(1'000, [&](uint32_t, uint64_t i) -> Status {
      ++begun;
      if (i < 100 || i % 3 != 0) return Status::ok();
      return {Code::kBadData, std::to_string(i)};
    });
    EXPECT_EQ(status.message(), "102");
    EXPECT_LE(begun.load(), 120U);  // no more are begun
    // And what comes after is not what was before.
    EXPECT_TRUE(team->run(5, [](uint32_t, uint64_t) { return Status::ok(); }).is_ok());
  }
}

}  // namespace
}  // namespace lockstep::data
