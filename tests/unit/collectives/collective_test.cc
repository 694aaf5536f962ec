// The same outcomes on every backend: loopback, shared memory, TCP, TLS, and a mix.
#include "comm/collectives/collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <limits>
#include <span>
#include <tuple>

#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/unit/collectives/world.h"

namespace lockstep {
namespace {

using testing::expected_sum;
using testing::layout_of;
using testing::tag_of;
using testing::Transport;
using testing::World;

class EveryBackend : public ::testing::TestWithParam<Transport> {};

INSTANTIATE_TEST_SUITE_P(Backends, EveryBackend,
                         ::testing::Values(Transport::kLoopback, Transport::kSharedMemory,
                                           Transport::kTcp, Transport::kTls, Transport::kMixed),
                         [](const auto& backend) { return testing::name_of(backend.param); });

// One world: `steps` steps of several buckets, every result compared bit for bit.
void check_steps(Transport transport, uint32_t ranks, uint32_t slots, uint64_t gradients,
                 uint32_t steps, uint64_t seed) {
  const BufferLayout layout = layout_of(gradients, 32);
  const uint32_t regions = regions_needed(slots, slots);
  World world(transport, ranks, layout, regions);
  world.start(3);
  const std::vector<SlotRun> runs = testing::random_runs(ranks, slots, seed);
  const uint64_t cut = gradients / 3 / kCutElements * kCutElements;
  const std::vector<ElementRange> buckets = {{0, cut}, {cut, layout.elements}};
  for (Step step = 0; step < steps; ++step) {
    std::vector<bool> non_empty(slots, true);
    if (step % 2 == 1) non_empty[seed % slots] = slots == 1;
    const StepMerge merge = make_step_merge(runs, slots, non_empty);
    const std::vector<float> expected = expected_sum(slots, non_empty, seed + step, layout);
    world.run([&](uint32_t r) {
      Collective& collective = *world.collectives[r];
      ASSERT_TRUE(collective.begin_step(tag_of(3, step), merge).is_ok());
      testing::fill_partials(merge.ranks[r], seed + step, world.buffers[r].get());
      for (uint32_t b = 0; b < buckets.size(); ++b) {
        const Status status = collective.all_reduce(tag_of(3, step, b), buckets[b]);
        ASSERT_TRUE(status.is_ok()) << status.message();
      }
      EXPECT_TRUE(same_bits({collective.reduced(), layout.statistics},
                            {expected.data(), layout.statistics}))
          << "rank " << r;
      for (uint64_t i = layout.statistics; i < layout.elements; ++i) {
        EXPECT_EQ(collective.reduced()[i], expected[i]);
      }
    });
  }
}

TEST_P(EveryBackend, AnyWorldGivesTheBitsOfOneRank) {
  for (uint32_t ranks = 1; ranks <= 8; ++ranks) {
    const uint64_t seed = 77 * ranks;
    const uint64_t gradients = kCutElements * (1 + Prng(seed).below(1'500));
    check_steps(GetParam(), ranks, ranks + Prng(seed).below(9), gradients, 3, seed);
  }
}

TEST_P(EveryBackend, LargeBucketsInBothDirectionsDoNotDeadlock) {
  check_steps(GetParam(), 3, 4, 320'000, 2, 5);
  check_steps(GetParam(), 2, 2, 1'280'000, 1, 6);
}

TEST_P(EveryBackend, AGenerationAfterAnotherUsesTheSameBuffers) {
  const BufferLayout layout = layout_of(160, 0);
  World world(GetParam(), 3, layout, 1);
  const std::vector<SlotRun> runs = {{0, 1}, {1, 2}, {2, 3}};
  const StepMerge merge = make_step_merge(runs, 3, {true, true, true});
  for (Generation g = 1; g <= 4; ++g) {
    world.start(g);
    const std::vector<float> expected = expected_sum(3, {true, true, true}, g, layout);
    world.run([&](uint32_t r) {
      ASSERT_TRUE(world.collectives[r]->begin_step(tag_of(g, 9), merge).is_ok());
      testing::fill_partials(merge.ranks[r], g, world.buffers[r].get());
      ASSERT_TRUE(world.collectives[r]->all_reduce(tag_of(g, 9), {0, layout.elements}).is_ok());
      EXPECT_TRUE(same_bits({world.collectives[r]->reduced(), layout.elements}, expected));
    });
  }
}

// Each rank ruins its sums as soon as it has them, while slower ranks may still read.
TEST_P(EveryBackend, SumsInTheCallersMemoryAreItsOwn) {
  const std::vector<SlotRun> runs = {{0, 1}, {1, 2}, {2, 3}};
  for (uint32_t ranks = 1; ranks <= 3; ++ranks) {
    const BufferLayout layout = layout_of(16 * 1024, 0);
    World world(GetParam(), ranks, layout, 1);
    world.start(1);
    const StepMerge merge =
        make_step_merge({runs.begin(), runs.begin() + ranks}, ranks, std::vector(ranks, true));
    world.run([&](uint32_t r) {
      Collective& collective = *world.collectives[r];
      std::vector<float> room(layout.elements);
      collective.sum_into(room.data());
      for (Step step = 0; step < 50; ++step) {
        const float value = static_cast<float>(step) + 1;
        ASSERT_TRUE(collective.begin_step(tag_of(1, step), merge).is_ok());
        std::fill_n(world.buffers[r]->partial(0), layout.elements, value);
        for (const ElementRange& range :
             {ElementRange{0, 15 * 1024}, ElementRange{15 * 1024, layout.elements}}) {
          ASSERT_TRUE(collective.all_reduce(tag_of(1, step), range).is_ok());
          const float* sum = collective.reduced();
          ASSERT_TRUE(std::all_of(sum + range.begin, sum + range.end,
                                  [&](float x) { return x == static_cast<float>(ranks) * value; }))
              << ranks << " ranks, step " << step;
          if (sum == room.data()) std::fill(room.begin(), room.end(), -1.0F);
        }
      }
      const bool is_host = GetParam() != Transport::kLoopback;
      EXPECT_EQ(collective.reduced() == room.data(), is_host && ranks > 1);
    });
  }
}

// C3. Each rank ruins its partials as soon as begin_step lets it, while slower ranks may still
// read.
TEST_P(EveryBackend, NothingPublishedIsRewrittenBeforeEveryPeerHasReadIt) {
  const uint32_t ranks = 3;
  const BufferLayout layout = layout_of(64 * 1024, 0);
  World world(GetParam(), ranks, layout, 1);
  world.start(1);
  const std::vector<SlotRun> runs = {{0, 1}, {1, 2}, {2, 3}};
  const StepMerge merge = make_step_merge(runs, ranks, {true, true, true});
  world.run([&](uint32_t r) {
    Collective& collective = *world.collectives[r];
    for (Step step = 0; step < (kIsSanitized ? 30 : 100); ++step) {
      ASSERT_TRUE(collective.begin_step(tag_of(1, step), merge).is_ok());
      const float value = static_cast<float>(step) + 1;
      std::fill_n(world.buffers[r]->partial(0), layout.elements, value);
      for (uint64_t begin = 0; begin < layout.elements; begin += 8192) {
        const ElementRange range = {begin, std::min(begin + 8192, layout.elements)};
        ASSERT_TRUE(collective.all_reduce(tag_of(1, step), range).is_ok());
      }
      const float* sum = collective.reduced();
      const auto wrong =
          std::find_if(sum, sum + layout.elements, [&](float x) { return x != 3 * value; });
      ASSERT_EQ(wrong - sum, static_cast<ptrdiff_t>(layout.elements)) << "step " << step;
    }
  });
}

TEST_P(EveryBackend, SmallOperationsCarryAnySize) {
  const uint32_t ranks = 3;
  World world(GetParam(), ranks, layout_of(16, 0), 1);
  world.start(2);
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{777}, size_t{256 * 1024}, size_t{700'001}}) {
    world.run([&](uint32_t r) {
      Collective& collective = *world.collectives[r];
      std::vector<std::byte> mine(size, std::byte(r + 1));
      std::vector<std::byte> all(size * ranks);
      ASSERT_TRUE(collective.all_gather(tag_of(2, 0, 0, size), mine, all).is_ok());
      for (uint32_t from = 0; from < ranks; ++from) {
        const auto part = std::span(all).subspan(from * size, size);
        ASSERT_TRUE(std::all_of(part.begin(), part.end(), [&](std::byte b) {
          return b == std::byte(from + 1);
        })) << from;
      }
      std::vector<std::byte> data(size, std::byte(r == 1 ? 42 : 0));
      ASSERT_TRUE(collective.broadcast(tag_of(2, 1, 0, size), data, 1).is_ok());
      ASSERT_TRUE(
          std::all_of(data.begin(), data.end(), [](std::byte b) { return b == std::byte(42); }));
      ASSERT_TRUE(collective.barrier(tag_of(2, 2)).is_ok());
    });
  }
}

TEST_P(EveryBackend, NobodyLeavesABarrierBeforeEveryoneHasEntered) {
  World world(GetParam(), 4, layout_of(16, 0), 1);
  world.start(1);
  std::atomic<uint32_t> entered{0};
  world.run([&](uint32_t r) {
    for (uint32_t round = 1; round <= 50; ++round) {
      ++entered;
      ASSERT_TRUE(world.collectives[r]->barrier(tag_of(1, round)).is_ok());
      EXPECT_GE(entered.load(), 4 * round);
    }
  });
}

// C4: every rank ends, at least one with the reason.
void expect_disagreement(const std::vector<Status>& ends) {
  bool explained = false;
  for (const Status& status : ends) {
    EXPECT_FALSE(status.is_ok());
    explained = explained || status.code() == Code::kInternal;
  }
  EXPECT_TRUE(explained);
}

TEST_P(EveryBackend, DifferentTagsAreAnErrorAndNeverAHang) {
  World world(GetParam(), 3, layout_of(1600, 0), 1);
  const std::vector<SlotRun> runs = {{0, 1}, {1, 2}, {2, 3}};
  const StepMerge merge = make_step_merge(runs, 3, {true, true, true});
  const auto run = [&](Generation g, const std::function<Status(uint32_t)>& operation) {
    world.start(g);
    std::vector<Status> ends(3);
    world.run([&](uint32_t r) {
      ASSERT_TRUE(world.collectives[r]->begin_step(tag_of(g, 0), merge).is_ok());
      ends[r] = operation(r);
      if (ends[r].is_ok()) ends[r] = world.collectives[r]->barrier(tag_of(g, 1));
    });
    expect_disagreement(ends);
  };
  run(1, [&](uint32_t r) {
    return world.collectives[r]->all_reduce(tag_of(1, 0, r == 2 ? 1 : 0), {0, 1600});
  });
  run(2, [&](uint32_t r) {
    return world.collectives[r]->all_reduce(tag_of(2, 0), {0, r == 1 ? 1600U : 800U});
  });
  run(3, [&](uint32_t r) {
    return r == 0 ? world.collectives[r]->barrier(tag_of(3, 0))
                  : world.collectives[r]->all_reduce(tag_of(3, 0), {0, 1600});
  });
  run(4, [&](uint32_t r) { return world.collectives[r]->barrier(tag_of(4, r)); });
  // The same operation, after devices have done different ones.
  run(5, [&](uint32_t r) {
    Tag tag = tag_of(5, 0);
    tag.device_operations = r == 1 ? 7 : 8;
    return world.collectives[r]->all_reduce(tag, {0, 1600});
  });
}

// No rank may wait for data that will not come.
TEST_P(EveryBackend, AnOperationThatFailedEndsTheGeneration) {
  World world(GetParam(), 2, layout_of(1600, 0), 1);
  world.start(1);
  std::vector<Status> ends(2);
  world.run([&](uint32_t r) {
    EXPECT_FALSE(world.collectives[r]->barrier(tag_of(1, r)).is_ok());
    ends[r] = world.collectives[r]->barrier(tag_of(1, 2));
  });
  for (const Status& status : ends) EXPECT_EQ(status.code(), Code::kAborted) << status.message();
}

TEST_P(EveryBackend, AbortEndsABlockedOperationAtOnceAndEveryLaterOne) {
  World world(GetParam(), 2, layout_of(1600, 0), 1);
  world.start(1);
  const std::vector<SlotRun> runs = {{0, 1}, {1, 2}};
  const StepMerge merge = make_step_merge(runs, 2, {true, true});
  Collective& collective = *world.collectives[0];
  ASSERT_TRUE(collective.begin_step(tag_of(1, 0), merge).is_ok());
  auto blocked = std::async(std::launch::async, [&] {
    return collective.all_reduce(tag_of(1, 0), {0, 1600});
  });
  EXPECT_EQ(blocked.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  collective.abort();
  ASSERT_EQ(blocked.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(blocked.get().code(), Code::kAborted);
  EXPECT_EQ(collective.barrier(tag_of(1, 1)).code(), Code::kAborted);
  EXPECT_EQ(collective.begin_step(tag_of(1, 1), merge).code(), Code::kAborted);
}

TEST_P(EveryBackend, AnAbortIsSeenByAPeerThatWaits) {
  World world(GetParam(), 3, layout_of(1600, 0), 1);
  world.start(1);
  world.run([&](uint32_t r) {
    if (r == 0) {
      world.collectives[0]->abort();
      return;
    }
    EXPECT_EQ(world.collectives[r]->barrier(tag_of(1, 0)).code(), Code::kAborted);
    EXPECT_EQ(world.collectives[r]->broken_rank(), -1);  // who closes is not lost
  });
}

TEST_P(EveryBackend, AloneTheOnlyPartialIsTheSum) {
  World world(GetParam(), 1, layout_of(160, 0), 2);
  world.start(1);
  const std::vector<SlotRun> runs = {{0, 2}};
  const StepMerge merge = make_step_merge(runs, 2, {true, true});
  ASSERT_TRUE(world.collectives[0]->begin_step(tag_of(1, 0), merge).is_ok());
  ASSERT_TRUE(world.collectives[0]->all_reduce(tag_of(1, 0), {0, 176}).is_ok());
  EXPECT_EQ(world.collectives[0]->reduced(),
            world.buffers[0]->partial(merge.gradients.leaves[0].region));
}

}  // namespace
}  // namespace lockstep
