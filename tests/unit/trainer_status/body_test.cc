#include "coordinator/trainer_status/body.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace lockstep::trainer {
namespace {

using nlohmann::json;

constexpr int64_t kSeenMs = 1'795'417'500'900;  // 2026-11-23T07:05:00.9Z

json status_of(const RunProgress& progress) {
  return json::parse(body_of(progress, kSeenMs))["trainerStatus"];
}

TEST(TrainerBody, IsWhatTheStatusServerReads) {
  RunProgress progress;
  progress.step = 1'234'567;
  progress.total_steps = 2'000'000;
  progress.seconds_left = 61.2;
  progress.metrics = {{"step", 1'234'567.0}, {"loss", 0.123456789}};
  EXPECT_EQ(json::parse(body_of(progress, kSeenMs)), json::parse(R"({"trainerStatus": {
      "progressPercentage": 61, "estimatedRemainingSeconds": 62,
      "metrics": [{"name": "step", "value": "1234567"}, {"name": "loss", "value": "0.123457"}],
      "lastUpdatedTime": "2026-11-23T07:05:00Z"}})"));
}

TEST(TrainerBody, LeavesOutWhatIsNotKnown) {
  RunProgress progress;
  progress.metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()},
                      {"eval_loss", std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(status_of(progress),
            json::parse(R"({"metrics": [], "lastUpdatedTime": "2026-11-23T07:05:00Z"})"));
}

TEST(TrainerBody, AHundredPercentIsOnlyACompleteRun) {
  RunProgress progress{.step = 999, .total_steps = 1000};
  EXPECT_EQ(percentage(progress), 99);
  progress.step = 1000;
  EXPECT_EQ(percentage(progress), 99) << "its checkpoint is still to come";
  progress.is_ended = true;
  EXPECT_EQ(percentage(progress), 99) << "it failed then";
  progress.is_complete = true;
  EXPECT_EQ(percentage(progress), 100);
  EXPECT_EQ(percentage({.step = 0, .total_steps = 7}), 0);
  EXPECT_EQ(percentage({.step = std::numeric_limits<uint64_t>::max() / 2,
                        .total_steps = std::numeric_limits<uint64_t>::max()}),
            49);
}

TEST(TrainerBody, ANumberOfSecondsHas32Bits) {
  RunProgress progress;
  for (const auto& [seconds, said] : std::vector<std::pair<double, int32_t>>{
           {1e300, std::numeric_limits<int32_t>::max()}, {-5, 0}, {0, 0}, {0.1, 1}}) {
    progress.seconds_left = seconds;
    EXPECT_EQ(status_of(progress)["estimatedRemainingSeconds"], said) << seconds;
  }
  progress.seconds_left = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(status_of(progress).contains("estimatedRemainingSeconds"));
}

}  // namespace
}  // namespace lockstep::trainer
