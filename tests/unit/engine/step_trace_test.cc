// Tests what a reader of the file sees of a traced step.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::small_job;

constexpr Step kSteps = 6;
constexpr StepWindow kWindow{2, 4};

class StepTraceTest : public ::testing::Test {
 protected:
  // Trains with two ranks and many buckets; rank 0 is traced.
  void SetUp() override {
    dataset_ = make_patterns(80);
    LoopbackWorld world(small_job("mlp"), *dataset_, even_runs(4, 2), 4096);
    world.traces = {&log_, nullptr};
    world.begin_generation(kSteps);
    state_ = world.train_to(kSteps).state;
    const json file = json::parse(log_.json(7, "rank 7"));
    for (const json& event : file["traceEvents"]) {
      EXPECT_EQ(event["pid"], 7);
      if (event["ph"] == "X") by_category_[event["cat"]].push_back(event);
    }
  }

  static bool is_in(const json& inner, const json& outer) {
    const double begin = inner["ts"], outer_begin = outer["ts"];
    const double end = begin + inner["dur"].get<double>();
    return begin >= outer_begin && end <= outer_begin + outer["dur"].get<double>() + 1e-3;
  }

  std::set<std::string> names(const std::string& category) const {
    std::set<std::string> names;
    for (const json& event : by_category_.at(category)) names.insert(event["name"]);
    return names;
  }

  std::unique_ptr<data::Dataset> dataset_;
  SystemClock clock_;
  TraceLog log_{kWindow, clock_};
  std::map<std::string, std::vector<json>> by_category_;
  std::string state_;
};

TEST_F(StepTraceTest, HasTheStepsOfTheWindowAndEveryPhaseWithinThem) {
  EXPECT_EQ(names("step"), (std::set<std::string>{"step 3", "step 4"}));
  EXPECT_EQ(names("phase"), (std::set<std::string>{"data_wait", "forward", "backward",
                                                   "communication", "optimizer", "other"}));
  const auto& steps = by_category_.at("step");
  ASSERT_EQ(steps.size(), 2u);
  for (const json& phase : by_category_.at("phase"))
    EXPECT_TRUE(is_in(phase, steps[0]) || is_in(phase, steps[1])) << phase;
}

TEST_F(StepTraceTest, HasOperatorsInsideForwardAndAutogradInsideBackward) {
  std::map<std::string, std::set<std::string>> seen;  // operators by phase
  for (const json& phase : by_category_.at("phase")) {
    for (const json& op : by_category_.at("operator"))
      if (is_in(op, phase)) seen[phase["name"]].insert(op["name"]);
  }
  EXPECT_TRUE(seen["forward"].count("aten::linear"));
  EXPECT_TRUE(seen["forward"].count("aten::relu"));
  EXPECT_TRUE(seen["backward"].count("ReluBackward0"));
}

TEST_F(StepTraceTest, HasEveryBucketOnTheLaneOfItsOwn) {
  const auto& buckets = by_category_.at("bucket");
  EXPECT_EQ(buckets.size(), 2 * names("bucket").size());  // in each of the two steps
  EXPECT_GE(names("bucket").size(), 2u);
  for (const json& bucket : buckets) {
    EXPECT_EQ(bucket["tid"], 2);
    EXPECT_TRUE(is_in(bucket, by_category_.at("step")[0]) ||
                is_in(bucket, by_category_.at("step")[1]));
  }
}

TEST_F(StepTraceTest, ChangesNoBit) {
  LoopbackWorld world(small_job("mlp"), *dataset_, even_runs(4, 2), 4096);
  world.begin_generation(kSteps);
  EXPECT_TRUE(world.train_to(kSteps).state == state_);
}

}  // namespace
}  // namespace lockstep
