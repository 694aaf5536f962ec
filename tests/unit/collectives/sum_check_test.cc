// A slice of a sum that other ranks add up again.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <optional>

#include "comm/collectives/cross_check.h"
#include "comm/collectives/host/slices.h"
#include "tests/unit/collectives/world.h"

namespace lockstep {
namespace {

using testing::Transport;
using testing::World;

TEST(CrossCheck, TheOwnerAndTheNextTwoTakePart) {
  const auto parts = [](uint32_t owner, uint32_t ranks) {
    std::vector<bool> taking;
    for (uint32_t r = 0; r < ranks; ++r) taking.push_back(takes_part(r, owner, ranks));
    return taking;
  };
  EXPECT_EQ(parts(0, 2), (std::vector<bool>{true, true}));
  EXPECT_EQ(parts(3, 4), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(parts(1, 5), (std::vector<bool>{false, true, true, true, false}));
}

using Hashes = std::vector<std::optional<uint64_t>>;

struct SumWorld {
  SumWorld(Transport transport, uint32_t ranks, uint64_t gradients)
      : layout{gradients, gradients, gradients + 16}, world(transport, ranks, layout, 2) {
    std::vector<SlotRun> runs;
    for (uint32_t r = 0; r < ranks; ++r) runs.push_back({r, r + 1});
    merge = make_step_merge(runs, ranks, std::vector<bool>(ranks, true));
    world.start(1);
  }

  // One step with the slice of `owner` checked; what each rank found.
  Hashes step(Step step, std::optional<uint32_t> owner) {
    Hashes found(world.collectives.size());
    world.run([&](uint32_t r) {
      Collective& collective = *world.collectives[r];
      ASSERT_TRUE(collective.begin_step({1, step, Phase::kTrain, 0, 0}, merge).is_ok());
      testing::fill_partials(merge.ranks[r], step, world.buffers[r].get());
      if (owner) collective.check_next_sum(*owner);
      const Status status =
          collective.all_reduce({1, step, Phase::kTrain, 0, 0}, {0, layout.elements});
      ASSERT_TRUE(status.is_ok()) << status.message();
      found[r] = collective.checked_sum();
    });
    return found;
  }

  const BufferLayout layout;
  StepMerge merge;
  World world;
};

constexpr uint64_t kSmall = 1024;       // everyone adds up everything
constexpr uint64_t kLarge = 64 * 1024;  // in slices

TEST(SumCheck, WhoAddsASliceAgainFindsWhatItsOwnerFound) {
  for (const uint64_t elements : {kSmall, kLarge}) {
    for (const uint32_t ranks : {2u, 3u, 4u}) {
      SumWorld w(Transport::kSharedMemory, ranks, elements);
      for (uint32_t owner = 0; owner < ranks; ++owner) {
        const Hashes found = w.step(owner, owner);
        const ElementRange slice = host::slice_of({0, w.layout.elements}, owner, ranks);
        const uint64_t expected =
            hash_of(w.world.collectives[0]->reduced() + slice.begin, slice.size());
        for (uint32_t r = 0; r < ranks; ++r) {
          EXPECT_EQ(found[r].has_value(), takes_part(r, owner, ranks));
          EXPECT_EQ(found[r].value_or(expected), expected) << elements << " " << ranks << " " << r;
        }
      }
    }
  }
}

TEST(SumCheck, OverTcpOnlyWhoHasAllPartialsTakesPart) {
  SumWorld w(Transport::kTcp, 3, kLarge);
  const Hashes slices = w.step(0, 1);
  EXPECT_TRUE(slices[1].has_value());
  EXPECT_FALSE(slices[0].has_value() || slices[2].has_value());
  SumWorld small(Transport::kTcp, 3, kSmall);
  const Hashes direct = small.step(0, 1);
  EXPECT_TRUE(direct[0] && direct[0] == direct[1] && direct[1] == direct[2]);
}

TEST(SumCheck, OnlyTheSumThatWasAskedForIsChecked) {
  SumWorld w(Transport::kSharedMemory, 3, kLarge);
  EXPECT_FALSE(w.step(0, std::nullopt)[0].has_value());
  const Hashes first = w.step(1, 0);
  EXPECT_EQ(w.step(2, std::nullopt), first);  // not again
  EXPECT_NE(w.step(3, 0)[0], first[0]);
}

// A bit of the owner's own slice flips while the owner waits for the other slices. All take the
// slice from there.
TEST(SumCheck, OneFlippedBitInARanksSliceIsSeenByTheTwoWhoAddItAgain) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a bit that flips by itself is a race";
#endif
  constexpr uint64_t kHuge = 1024 * 1024;
  constexpr uint32_t kOwner = 1;
  SumWorld w(Transport::kSharedMemory, 3, kHuge);
  const ElementRange slice = host::slice_of({0, w.layout.elements}, kOwner, 3);
  auto* words = reinterpret_cast<uint32_t*>(w.world.buffers[kOwner]->result());
  const std::atomic_ref<uint32_t> first(words[slice.begin]);
  const std::atomic_ref<uint32_t> last(words[slice.end - 1]);
  // The flip may come too late for this step's check; then the next step is tried.
  bool is_seen = false;
  for (Step step = 0; step < 500 && !is_seen; ++step) {
    constexpr uint32_t kNothingYet = 0x7fc12345;  // no sum
    last = kNothingYet;
    std::atomic<bool> is_over{false};
    std::thread flip([&] {
      while (last == kNothingYet && !is_over) {
      }
      first.fetch_xor(1);
    });
    const Hashes found = w.step(step, kOwner);
    is_over = true;
    flip.join();
    ASSERT_TRUE(found[0] && found[1] && found[2]);
    EXPECT_EQ(found[0], found[2]);
    is_seen = found[1] != found[0];
  }
  EXPECT_TRUE(is_seen);
}

}  // namespace
}  // namespace lockstep
