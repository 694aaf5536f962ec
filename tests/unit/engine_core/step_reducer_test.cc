// Merging and reducing a step without a model: gradients are small numbers made up per slot.
#include "worker/engine/step_reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "comm/collectives/forwarding.h"
#include "tests/unit/engine_core/reducer_world.h"

namespace lockstep {
namespace {

using testing::digest_of;
using testing::SeparateSums;
using testing::small_model;
using testing::World;

TEST(StepReducer, SumsAreTheSameForAnyRunsAndBucketsAndEmptySlots) {
  const std::vector<std::vector<SlotRun>> splits = {
      {{0, 5}}, {{0, 2}, {2, 5}}, {{0, 4}, {4, 5}}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}};
  int added = 0;
  for (const std::vector<bool>& non_empty : {std::vector<bool>{true, true, true, true, true},
                                             {false, true, false, true, true},
                                             {true, true, true, true, false},
                                             {true, false, true, false, false}}) {
    const std::vector<float> expected = World(splits[0], 5, 1 << 20).run(4, non_empty);
    for (const auto& runs : splits) {
      for (const uint64_t bucket_bytes : {256u, 1u << 20}) {
        World world(runs, 5, bucket_bytes);
        EXPECT_TRUE(world.run(4, non_empty) == expected)
            << runs.size() << " ranks, buckets of " << bucket_bytes << " bytes";
        World adding(runs, 5, bucket_bytes);
        adding.adds = true;
        EXPECT_TRUE(adding.run(4, non_empty) == expected)
            << runs.size() << " ranks that add, buckets of " << bucket_bytes << " bytes";
        added += adding.sums_added_to;
      }
    }
    World alone(splits[0], 5, 256);
    alone.on_device = true;
    EXPECT_TRUE(alone.run(4, non_empty) == expected) << "on a device";
  }
  EXPECT_GT(added, 0);
}

// Notes which bucket is summed, one after the other.
class LeavingBuckets final : public Forwarding<Collective> {
 public:
  using Forwarding::Forwarding;
  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    left.push_back(tag.bucket);
    return Forwarding::all_reduce(tag, range);
  }
  std::vector<uint32_t> left;
};

// Gradients come in the order of registration, the last bucket's first.
TEST(StepReducer, BucketsLeaveInTheOrderInWhichTheirGradientsCome) {
  World world({{0, 1}, {1, 2}}, 2, 256);
  const StepMerge merge = make_step_merge(world.runs, 2, {true, true});
  const auto last = static_cast<uint32_t>(world.bounds.size() - 2);
  ASSERT_GE(last, 3u);
  std::vector<uint32_t> ascending(last + 1);
  std::iota(ascending.begin(), ascending.end(), 0);
  std::vector<uint32_t> as_they_come(ascending.rbegin() + 1, ascending.rend());
  as_they_come.push_back(last);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      std::atomic<uint32_t> progress{0};
      LeavingBuckets collective(std::move(world.collectives[r]));
      StepReducer reducer(world.layout, *world.buffers[r], collective, 1, world.bounds, progress);
      for (const Step t : {0, 1, 2}) {
        collective.left.clear();
        const Status status = world.step(reducer, r, t, merge, false);
        ASSERT_TRUE(status.is_ok()) << status.message();
        EXPECT_EQ(collective.left, t == 0 ? ascending : as_they_come);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StepReducer, ADigestOfAnyBitsComesBackFromItsFourFloats) {
  const FlatLayout layout = make_flat_layout(small_model(), 3);
  std::vector<float> control(layout.control_elements());
  const uint64_t digests[] = {~uint64_t{0}, 0x0001000200030004, 0x8000ffff00017fff};
  for (uint32_t slot = 0; slot < 3; ++slot) put_digest(control.data(), slot, digests[slot]);
  for (uint32_t slot = 0; slot < 3; ++slot)
    EXPECT_EQ(get_digest(control.data(), slot), digests[slot]);
}

// A vote that comes while buckets are on their way still counts in this step.
TEST(StepReducer, VotesAreAskedOnceWhenTheLastBucketLeaves) {
  World world({{0, 2}}, 2, 256);
  const StepMerge merge = make_step_merge(world.runs, 2, {true, true});
  std::atomic<uint32_t> progress{0};
  StepReducer reducer(world.layout, *world.buffers[0], *world.collectives[0], 1, world.bounds,
                      progress);
  reducer.begin_step(0, merge);
  for (const SlotWork& work : merge.ranks[0].work) {
    ASSERT_TRUE(reducer.open().is_ok());
    world.fill(reducer, work, 0, 0);
    ASSERT_TRUE(reducer.slot_done(work).is_ok());
  }
  int asked = 0;
  const Status status = reducer.finish([&] {
    EXPECT_EQ(progress + 1, world.bounds.size() - 1);  // all but the last bucket have left
    ++asked;
    return Votes{};
  });
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(asked, 1);
}

TEST(StepReducer, AnAbortEndsAStepThatWaitsForItsPeer) {
  for (const uint64_t bucket_bytes : {256u, 1u << 20}) {
    World world({{0, 2}, {2, 4}}, 4, bucket_bytes);
    const StepMerge merge = make_step_merge(world.runs, 4, {true, true, true, true});
    std::atomic<uint32_t> progress{0};
    StepReducer reducer(world.layout, *world.buffers[0], *world.collectives[0], 1, world.bounds,
                        progress);
    std::thread aborter([&] { world.collectives[1]->abort(); });
    const Status status = world.step(reducer, 0, 0, merge, false);
    aborter.join();
    EXPECT_EQ(status.code(), Code::kAborted);
  }
}

// Devices that are connected, sum nothing, and let the wait for their sums end as a test likes.
class EndingWaits final : public Forwarding<DeviceCollective, Collective> {
 public:
  EndingWaits(std::unique_ptr<Collective> of, Result<uint64_t> end)
      : Forwarding(std::move(of)), end_(std::move(end)) {}
  Status begin_step(const Tag&, const StepMerge&) override { return Status::ok(); }
  Status all_reduce(const Tag&, const ElementRange&) override { return Status::ok(); }
  Result<uint64_t> wait_for_sums() override { return end_; }

 private:
  const Result<uint64_t> end_;
};

// One step of two ranks whose waits for the sums of their devices end like this.
std::array<Status, 2> step_with_devices(const std::array<Result<uint64_t>, 2>& ends) {
  World world({{0, 1}, {1, 2}}, 2, 256);
  World devices({{0, 1}, {1, 2}}, 2, 256);
  const StepMerge merge = make_step_merge(world.runs, 2, {true, true});
  std::array<Status, 2> found;
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      std::atomic<uint32_t> progress{0};
      SeparateSums sums(world.layout.buffer, regions_needed(2, 2));
      EndingWaits waits(std::move(devices.collectives[r]), ends[r]);
      StepReducer reducer(world.layout, *world.buffers[r], *world.collectives[r], 1, world.bounds,
                          progress, {.sums = &sums, .devices = &waits});
      found[r] = world.step(reducer, r, 0, merge, false);
      if (!found[r].is_ok()) world.collectives[r]->abort();  // as the runner does, U4
    });
  }
  for (std::thread& thread : threads) thread.join();
  return found;
}

// R6. An evicted rank aborts its device while sums are missing. Its neighbour's kernels then return
// as if they had finished, so only the missing agreement keeps the neighbour from applying garbage.
TEST(StepReducer, NobodyAgreesToAStepOfAPeerThatAbortedItsSums) {
  const auto found = step_with_devices({7, Status(Code::kAborted, "evicted")});
  EXPECT_EQ(found[0].code(), Code::kAborted);
  EXPECT_EQ(found[1].code(), Code::kAborted);
}

// Heartbeats tell how far the device is. Each bucket is counted after its partials and before its
// sum, which may wait for peers. A rank that has all sums is further than a rank that waits for
// them.
TEST(StepReducer, BucketsAreCountedByTheDeviceAndTheSumsByTheHost) {
  World world({{0, 1}}, 1, 256);
  World devices({{0, 1}}, 1, 256);
  const StepMerge merge = make_step_merge(world.runs, 1, {true});
  const auto buckets = static_cast<uint32_t>(world.bounds.size() - 1);
  std::atomic<uint32_t> enqueued{0};
  SeparateSums sums(world.layout.buffer, regions_needed(1, 1));
  EndingWaits waits(std::move(devices.collectives[0]), 7);
  StepReducer reducer(world.layout, *world.buffers[0], *world.collectives[0], 1, world.bounds,
                      enqueued, {.sums = &sums, .devices = &waits});
  for (const Step step : {0, 1}) {
    ASSERT_TRUE(world.step(reducer, 0, step, merge, false).is_ok());
    std::vector<uint32_t> expected(sums.counted.size());
    std::iota(expected.begin(), expected.end(), 1u);
    EXPECT_EQ(sums.counted, expected);
    EXPECT_GE(sums.counted.size() + 1, buckets);  // the last may hold nothing but the control
    EXPECT_EQ(sums.seen, buckets + 1);
    EXPECT_EQ(enqueued, buckets + 1);
  }
}

// C4, for what no tag on the way has compared.
TEST(StepReducer, RanksWhoseDevicesWereInDifferentOperationsAreToldSo) {
  for (const Status& status : step_with_devices({7, 7})) EXPECT_TRUE(status.is_ok());
  const auto found = step_with_devices({7, 8});
  EXPECT_FALSE(found[0].is_ok() || found[1].is_ok());
  EXPECT_TRUE(found[0].code() == Code::kInternal || found[1].code() == Code::kInternal);
}

}  // namespace
}  // namespace lockstep
