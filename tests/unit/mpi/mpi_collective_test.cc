// The ranks of an MPI world add up and tell each other the same as over loopback.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/same_bits.h"
#include "tests/unit/mpi/mpi_world.h"

namespace lockstep {
namespace {

using testing::expected_sum;
using testing::layout_of;
using testing::MpiTest;
using testing::tag_of;

class MpiCollectives : public MpiTest {
 protected:
  struct Shape {
    uint32_t slots = 0;
    uint64_t gradients = 0;
    uint64_t seed = 0;  // and the generation
  };

  // Three steps of two buckets, each compared bit for bit.
  void expect_the_bits_of_one_rank(const Shape& shape) {
    const BufferLayout layout = layout_of(shape.gradients, 32);
    lane_ = make_lane(false);
    make_buffer(layout, regions_needed(shape.slots, shape.slots));
    start(shape.seed);
    const auto runs = testing::random_runs(ranks_, shape.slots, shape.seed);
    const uint64_t cut = shape.gradients / 3 / kCutElements * kCutElements;
    for (Step step = 0; step < 3; ++step) {
      std::vector<bool> non_empty(shape.slots, true);
      if (step == 1) non_empty[shape.seed % shape.slots] = shape.slots == 1;
      const StepMerge merge = make_step_merge(runs, shape.slots, non_empty);
      const std::vector<float> expected =
          expected_sum(shape.slots, non_empty, shape.seed + step, layout);
      ASSERT_TRUE(collective_->begin_step(tag_of(shape.seed, step), merge).is_ok());
      testing::fill_partials(merge.ranks[rank_], shape.seed + step, buffer_.get());
      for (const ElementRange& range : {ElementRange{0, cut}, ElementRange{cut, layout.elements}}) {
        const Status status = collective_->all_reduce(tag_of(shape.seed, step), range);
        ASSERT_TRUE(status.is_ok()) << status.message();
      }
      EXPECT_TRUE(same_bits({collective_->reduced(), layout.elements}, expected))
          << "rank " << rank_ << ", step " << step << ", " << shape.slots << " slots";
    }
    collective_.reset();
  }
};

TEST_F(MpiCollectives, ExactSumsHaveTheBitsOfOneRankOverLoopback) {
  expect_the_bits_of_one_rank({ranks_, 160, 5});             // direct
  expect_the_bits_of_one_rank({ranks_ + 3, 1'600, 6});       // several partials a rank
  expect_the_bits_of_one_rank({ranks_ + 8, 16 * 1'031, 7});  // slices of different length
  expect_the_bits_of_one_rank({2 * ranks_, 96'000, 8});      // beyond MPI's eager messages
}

TEST_F(MpiCollectives, FastSumsAreThoseOfAllSlots) {
  const uint32_t slots = ranks_ + 3;
  const BufferLayout layout = layout_of(40'000, 32);
  lane_ = make_lane(true);
  make_buffer(layout, regions_needed(slots, slots));
  start(1);
  const auto runs = testing::random_runs(ranks_, slots, 4);
  std::vector<bool> non_empty(slots, true);
  non_empty[0] = false;
  const StepMerge merge = make_step_merge(runs, slots, non_empty);
  const std::vector<float> expected = expected_sum(slots, non_empty, 11, layout);
  ASSERT_TRUE(collective_->begin_step(tag_of(1, 0), merge).is_ok());
  testing::fill_partials(merge.ranks[rank_], 11, buffer_.get());
  ASSERT_TRUE(collective_->all_reduce(tag_of(1, 0), {0, layout.elements}).is_ok());
  for (uint64_t i = 0; i < layout.elements; ++i) {
    // Values are below 2^15 each; only the order of a few additions differs.
    ASSERT_NEAR(collective_->reduced()[i], expected[i], 0.1) << i;
  }
}

TEST_F(MpiCollectives, SmallOperationsCarryAnySize) {
  start(2);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{777}, size_t{700'001}}) {
    const std::vector<std::byte> mine(size, std::byte(rank_ + 1));
    std::vector<std::byte> all(size * ranks_);
    ASSERT_TRUE(collective_->all_gather(tag_of(2, 0, 0, size), mine, all).is_ok());
    size_t wrong = 0;
    for (size_t i = 0; i < all.size(); ++i) wrong += all[i] != std::byte(i / size + 1);
    EXPECT_EQ(wrong, 0u);
    std::vector<std::byte> data(size, std::byte(rank_ == 1 ? 42 : 0));
    ASSERT_TRUE(collective_->broadcast(tag_of(2, 1, 0, size), data, 1).is_ok());
    EXPECT_TRUE(
        std::all_of(data.begin(), data.end(), [](std::byte b) { return b == std::byte(42); }));
    ASSERT_TRUE(collective_->barrier(tag_of(2, 2)).is_ok());
  }
}

// Planned changes: members in another order, one of them left out, and all of them again.
TEST_F(MpiCollectives, AGenerationMapsItsRanksToRanksOfMpiInAnyOrderAndMayLeaveSomeOut) {
  lane_ = make_lane(true);  // of a part of the world fast is exact
  make_buffer(layout_of(16'000, 0), 1);
  for (Generation generation = 1; generation <= 3; ++generation) {
    std::vector<int> order;
    for (uint32_t r = ranks_; r-- > 0;) order.push_back(static_cast<int>(r));
    if (generation == 2) order.pop_back();  // without MPI rank 0
    const auto members = static_cast<uint32_t>(order.size());
    if (generation == 2 && rank_ == 0) continue;
    const uint32_t rank = ranks_ - 1 - rank_;
    ASSERT_TRUE(connect(generation, rank, order).is_ok());
    std::vector<SlotRun> runs;
    for (uint32_t r = 0; r < members; ++r) runs.push_back({r, r + 1});
    const StepMerge merge = make_step_merge(runs, members, std::vector<bool>(members, true));
    ASSERT_TRUE(collective_->begin_step(tag_of(generation, 7), merge).is_ok());
    std::fill_n(buffer_->partial(0), 16'016, static_cast<float>(rank + 1));
    ASSERT_TRUE(collective_->all_reduce(tag_of(generation, 7), {0, 16'016}).is_ok());
    const uint32_t sum = members * (members + 1) / 2;
    EXPECT_TRUE(std::all_of(collective_->reduced(), collective_->reduced() + 16'016,
                            [sum](float x) { return x == static_cast<float>(sum); }));
  }
}

TEST_F(MpiCollectives, ACheckedSliceIsHashedByItsOwner) {
  make_buffer(layout_of(160'000, 0), 1);
  start(1);
  std::vector<SlotRun> runs;
  for (uint32_t r = 0; r < ranks_; ++r) runs.push_back({r, r + 1});
  const StepMerge merge = make_step_merge(runs, ranks_, std::vector<bool>(ranks_, true));
  ASSERT_TRUE(collective_->begin_step(tag_of(1, 0), merge).is_ok());
  collective_->check_next_sum(1);
  ASSERT_TRUE(collective_->all_reduce(tag_of(1, 0), {0, 160'000}).is_ok());
  EXPECT_EQ(collective_->checked_sum().has_value(), rank_ == 1);
}

TEST_F(MpiCollectives, AWorldHasOneIdOnAllItsRanksAndNoOtherHasIt) {
  std::vector<uint64_t> ids(ranks_);
  const uint64_t mine = lane_->world();
  MPI_Allgather(&mine, 1, MPI_UINT64_T, ids.data(), 1, MPI_UINT64_T, comm_);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), mine), ranks_);
  EXPECT_EQ(lane_->rank(), rank_);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  EXPECT_NE(make_lane(false)->world(), mine);
}

// MPI may write there long after an abort, when the run goes on with the buffer over another way.
TEST_F(MpiCollectives, SumsAreNotInTheGradientBuffer) {
  make_buffer(layout_of(16'000, 0), 1);
  start(1);
  EXPECT_NE(collective_->reduced(), buffer_->result());
}

}  // namespace
}  // namespace lockstep
