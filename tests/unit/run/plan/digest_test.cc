#include "comm/run/plan/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace lockstep::data {
namespace {

using Delivered = std::vector<std::pair<uint64_t, uint64_t>>;  // (position, sample)

uint64_t digest_of(uint64_t dataset, Epoch pass, const Delivered& delivered) {
  SampleDigest digest(dataset, pass);
  for (const auto& [position, sample] : delivered) digest.add(position, sample);
  return digest.value();
}

TEST(SampleDigest, SeesEveryWayToDeliverSomethingElse) {
  const std::set<uint64_t> digests = {
      digest_of(0, 1, {{8, 5}, {9, 7}}),          // the plan
      digest_of(0, 1, {{8, 7}, {9, 5}}),          // exchanged samples
      digest_of(0, 1, {{9, 7}, {8, 5}}),          // another order
      digest_of(0, 1, {{8, 5}}),                  // one missing
      digest_of(0, 1, {{8, 5}, {9, 7}, {9, 7}}),  // one repeated
      digest_of(0, 1, {{8, 5}, {9, 6}}),          // a wrong one
      digest_of(0, 2, {{8, 5}, {9, 7}}),          // of another pass
      digest_of(1, 1, {{8, 5}, {9, 7}}),          // of another dataset
      digest_of(0, 1, {}),
      digest_of(1, 0, {}),
  };
  EXPECT_EQ(digests.size(), 10U);
}

TEST(SampleDigest, OfThePlanIsThatOfItsPositionsInOrder) {
  const RunShape shape{100, 32, 3};
  const StepPlan plan = plan_step(shape, 5);
  const EpochOrder order({9, "data", shape.samples}, plan.epoch);
  const PositionRange range = slot_positions(plan, 1, 3);
  Delivered delivered;
  for (uint64_t p = range.begin; p < range.end; ++p) delivered.emplace_back(p, order.at(p));
  EXPECT_EQ(planned_digest(order, plan, 1, 3), digest_of(0, plan.epoch, delivered));
  EXPECT_NE(planned_digest(order, plan, 1, 3), planned_digest(order, plan, 2, 3));
}

TEST(SampleDigest, StaysTheSameForever) {
  EXPECT_EQ(digest_of(0, 1, {{8, 5}, {9, 7}}), 15971366731861779064U);
}

}  // namespace
}  // namespace lockstep::data
