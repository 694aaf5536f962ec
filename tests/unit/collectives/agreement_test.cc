// Tests what ranks compare before they use each other's data, and how a flight record tells it.
#include <gtest/gtest.h>

#include "comm/base/clock.h"
#include "comm/collectives/flight_record.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/collectives/node_levels.h"
#include "comm/collectives/operations_hash.h"
#include "comm/collectives/recorded.h"
#include "comm/collectives/sum_slice.h"

namespace lockstep {
namespace {

const Tag kTag{.generation = 1, .step = 2, .phase = Phase::kTrain, .bucket = 3, .bytes = 64};

uint64_t hash_of_one(const Tag& tag, const ElementRange& range) {
  OperationsHash hash;
  hash.begin_step(7);
  hash.add(tag, range);
  return hash.value();
}

TEST(OperationsHash, OperationsOnOtherElementsAreOthers) {
  const uint64_t hash = hash_of_one(kTag, {16, 32});
  EXPECT_EQ(hash, hash_of_one(kTag, {16, 32}));
  EXPECT_NE(hash, hash_of_one(kTag, {0, 16})) << "of the same size";
  EXPECT_NE(hash, hash_of_one(kTag, {16, 48}));
  Tag other = kTag;
  other.bucket = 4;
  EXPECT_NE(hash, hash_of_one(other, {16, 32}));
}

TEST(OperationsHash, TheOrderCountsAndEveryStepBeginsWithItsMerge) {
  OperationsHash first, second;
  first.begin_step(7);
  first.add(kTag, {0, 16});
  first.add(kTag, {16, 32});
  second.begin_step(7);
  second.add(kTag, {16, 32});
  second.add(kTag, {0, 16});
  EXPECT_NE(first.value(), second.value());
  first.begin_step(8);
  EXPECT_EQ(first.value(), 8u);
}

// Floats do not add to the same bits in another order.
TEST(MergeHash, TheSameLeavesInAnotherTreeAreAnotherMerge) {
  StepMerge left;
  left.gradients.leaves = {{0, 0}, {1, 0}, {2, 0}};
  left.gradients.ops = {0, 1, -1, 2, -1};
  StepMerge right = left;
  EXPECT_EQ(hash_of(left), hash_of(right));
  right.gradients.ops = {0, 1, 2, -1, -1};
  EXPECT_NE(hash_of(left), hash_of(right));
  StepMerge other_control = left;
  other_control.control.leaves = {{0, 0}};
  EXPECT_NE(hash_of(left), hash_of(other_control));
}

TEST(NodeLevels, SumsHaveTwoLevelsWhereSomeOfSeveralNodesHasSeveralRanks) {
  EXPECT_TRUE(sums_in_levels(std::vector<uint32_t>{0, 0, 1}));
  EXPECT_FALSE(sums_in_levels(std::vector<uint32_t>{0, 1, 2}));
  EXPECT_FALSE(sums_in_levels(std::vector<uint32_t>{0, 0, 0}));
}

TEST(RecordedCollective, ASmallOperationThatFailsIsNotedAsFailed) {
  SystemClock clock;
  FlightRecord record(clock);
  const auto buffer = make_plain_buffer({16, 16, 32}, 1);
  RecordedCollective collective(std::move(make_loopback(1, {buffer.get()}).front()), record);
  EXPECT_TRUE(collective.barrier(kTag).is_ok());
  collective.abort();
  std::vector<std::byte> one(1);
  EXPECT_FALSE(collective.barrier(kTag).is_ok());
  EXPECT_FALSE(collective.broadcast(kTag, one, 0).is_ok());
  EXPECT_FALSE(collective.all_gather(kTag, one, one).is_ok());
  EXPECT_FALSE(collective.begin_step(kTag, make_step_merge(std::vector<SlotRun>{{0, 1}}, 1, {true}))
                   .is_ok());
  const std::vector<FlightLine> lines = record.newest(9);
  ASSERT_EQ(lines.size(), 5u);
  const FlightOperation operations[] = {FlightOperation::kBarrier, FlightOperation::kBarrier,
                                        FlightOperation::kBroadcast, FlightOperation::kGather,
                                        FlightOperation::kBeginStep};
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].operation, operations[i]) << i;
    EXPECT_EQ(lines[i].state, i == 0 ? FlightState::kDone : FlightState::kFailed) << i;
    EXPECT_EQ(lines[i].place.step, 2u);
  }
}

}  // namespace
}  // namespace lockstep
