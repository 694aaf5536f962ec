#include "worker/script/script_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

constexpr uint32_t kSlotsOfLayout = 3;

ScriptFacts two_and_one() {
  return {.parameters = {{"w", {4, 5}, false}, {"b", {}, true}},
          .statistics = {{"mean", {6}, false}},
          .metrics = {"acc"},
          .has_counts = true};
}

TEST(ScriptLayout, WhatIsUsedAndWhatIsCountedLieBehindTheDigests) {
  const ScriptLayout layout = ScriptLayout::create(two_and_one(), kSlotsOfLayout).value();
  EXPECT_EQ(layout.used_at(0), own_control(kSlotsOfLayout));
  EXPECT_EQ(layout.count_at(), own_control(kSlotsOfLayout) + 2);
  EXPECT_GE(layout.flat().control_elements(), layout.count_at() + 2);
  EXPECT_EQ(layout.flat().parameters[0].elements, 20U);
  EXPECT_EQ(layout.flat().parameters[1].elements, 1U) << "of no dimensions";
  EXPECT_TRUE(layout.loss().has_weights);
  EXPECT_EQ(layout.loss().metrics, std::vector<std::string>{"acc"});
}

TEST(ScriptLayout, CountsOfSlotsAddUpExactlyFarBeyondFloats) {
  const ScriptLayout layout = ScriptLayout::create(two_and_one(), kSlotsOfLayout).value();
  std::vector<float> sum(layout.flat().control_elements());
  double truth = 0;
  for (const uint64_t count : {(uint64_t{1} << 31) + 1, (uint64_t{1} << 31) + 4095, uint64_t{7}}) {
    std::vector<float> one(sum.size());
    layout.put_count(one.data(), count);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    truth += static_cast<double>(count);
  }
  EXPECT_EQ(layout.get_count(sum.data()), truth);
}

TEST(ScriptLayout, SumsBecomeMeansForTheOptimizer) {
  ScriptLayout layout = ScriptLayout::create(two_and_one(), kSlotsOfLayout).value();
  std::vector<float> sums(layout.flat().buffer.elements);
  sums[layout.flat().parameters[0].begin] = 3;
  sums[layout.flat().statistics[0].begin + 5] = 6;
  sums[layout.flat().buffer.statistics + layout.used_at(1)] = 2;
  layout.take_sums(sums.data(), /*slots=*/3, /*factor=*/0.5f);
  layout.take_used(sums.data() + layout.flat().buffer.statistics);
  EXPECT_EQ(layout.gradients()[layout.parameter_begins()[0]], 1.5f);
  EXPECT_EQ(layout.statistics()[layout.statistic_begins()[0] + 5], 2.0f);
  EXPECT_THAT(layout.used(), ::testing::ElementsAre(0.0f, 2.0f));
}

TEST(ScriptLayout, WhatCannotBeIsRefusedByName) {
  const auto refused = [](ScriptFacts facts) {
    return ScriptLayout::create(std::move(facts), kSlotsOfLayout).status();
  };
  EXPECT_THAT(refused({}), FailsWith(Code::kUsage, Says("no parameter")));
  ScriptFacts facts = two_and_one();
  facts.metrics.resize(kMostMetrics + 1);
  EXPECT_THAT(refused(facts), FailsWith(Code::kUsage, Says("metrics"), Advises("leave some out")));
  for (const std::string& name :
       {std::string("top 5"), std::string("50%"), std::string("F1@0.5"), std::string("a:b"),
        std::string("pr\u00e9cision"), std::string(65, 'a'), std::string()}) {
    facts = two_and_one();
    facts.metrics.push_back(name);
    EXPECT_THAT(refused(facts), FailsWith(Code::kUsage, Names(name), Says("letters"))) << name;
  }
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{-1}, {0}, {1 << 30, 1 << 30, 1 << 30}}) {
    facts = two_and_one();
    facts.parameters[0].shape = shape;
    EXPECT_THAT(refused(facts), FailsWith(Code::kConfig, Names("w")));
  }
}

}  // namespace
}  // namespace lockstep
