// The NCCL backend with every rank in this process, against the tree's own sum.
#include "comm/collectives/nccl/nccl_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <future>
#include <latch>
#include <thread>

#include "comm/base/prng.h"
#include "comm/collectives/sum_slice.h"
#include "tests/cuda/nccl_world.h"
#include "tests/support/same_bits.h"

namespace lockstep::nccl {
namespace {

using testing::FakeNccl;
using testing::NcclWorker;
using testing::NcclWorkers;
using testing::run_ranks;

constexpr BufferLayout kLayout{.gradients = 1024, .statistics = 1088, .elements = 1136};
constexpr uint64_t kBounds[] = {0, 512, 1040, kLayout.elements};
constexpr Generation kGeneration = 3;

Tag tag_of(Step step, uint32_t bucket) {
  return {.generation = kGeneration, .step = step, .bucket = bucket};
}

class NcclCollectiveTest : public ::testing::Test {
 protected:
  void SetUp() override { FakeNccl::get().reset(); }
  void TearDown() override {
    workers.clear();
    testing::FakeCuda::get().reset();
    EXPECT_THAT(FakeNccl::get().misuses(), ::testing::IsEmpty());
  }

  void make(uint32_t ranks, uint32_t slots, Numerics numerics, uint32_t local) {
    std::vector<SlotRun> runs;
    std::vector<uint32_t> nodes;
    std::vector<NcclWorker*> raw;
    for (uint32_t r = 0; r < ranks; ++r) {
      runs.push_back({r * slots / ranks, (r + 1) * slots / ranks});
      nodes.push_back(r / local);
      workers.push_back(std::make_unique<NcclWorker>(100 + r, kLayout, 4, numerics));
      raw.push_back(workers.back().get());
    }
    std::vector<bool> non_empty(slots, true);
    if (slots > 2) non_empty[1] = false;
    merge = make_step_merge(runs, slots, non_empty);
    testing::start(raw, kGeneration, nodes);
  }

  void fill(Step step) {
    for (uint32_t r = 0; r < workers.size(); ++r) {
      for (uint32_t region = 0; region < 4; ++region) {
        for (uint64_t i = 0; i < kLayout.elements; ++i)
          workers[r]->buffer->partial(region)[i] =
              static_cast<float>(stream_value(step * 100 + r * 8 + region, i) % 2001) / 1000 - 1;
      }
    }
  }

  std::vector<float> tree_sum() {
    std::vector<float> out(kLayout.elements);
    const auto leaf_at = [&](const Leaf& leaf) {
      return workers[leaf.rank]->buffer->partial(leaf.region);
    };
    sum_slice(merge, kLayout.statistics, {0, kLayout.elements}, leaf_at, out.data());
    return out;
  }

  cudaStream_t stream_of(uint32_t rank) {
    return static_cast<cudaStream_t>(workers[rank]->queue->stream());
  }

  Status step(uint32_t rank, Step number) {
    Collective& collective = *workers[rank]->collective;
    LOCKSTEP_RETURN_IF_ERROR(collective.begin_step(tag_of(number, 0), merge));
    for (uint32_t b = 0; b < 3; ++b) {
      LOCKSTEP_RETURN_IF_ERROR(
          collective.all_reduce(tag_of(number, b), {kBounds[b], kBounds[b + 1]}));
    }
    return Status::ok();
  }

  NcclWorkers workers;
  StepMerge merge;
};

struct Shape {
  uint32_t ranks, slots, local;
};

TEST_F(NcclCollectiveTest, ExactHasTheBitsOfTheTreeOverSeveralSteps) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 3, 1}, Shape{2, 2, 2}, Shape{3, 7, 3},
                             Shape{4, 8, 2}, Shape{4, 4, 2}}) {
    FakeNccl::get().reset();
    workers.clear();
    make(shape.ranks, shape.slots, Numerics::kExact, shape.local);
    for (Step number = 0; number < 2; ++number) {
      fill(number);
      const std::vector<float> expected = tree_sum();
      run_ranks(workers.size(), [&](uint32_t r) {
        const Status status = step(r, number);
        ASSERT_TRUE(status.is_ok()) << status.message();
        ASSERT_TRUE(workers[r]->collective->wait_for_sums().is_ok());
        EXPECT_TRUE(same_bits({workers[r]->collective->reduced(), expected.size()}, expected))
            << "rank " << r << " of " << shape.ranks;
      });
    }
  }
}

// A kernel that takes its time.
void be_slow() {
  for (int i = 0; i < 2'000; ++i) std::this_thread::yield();
}

TEST_F(NcclCollectiveTest, ASumWaitsForTheGradientsThatAreStillComputed) {
  make(1, 3, Numerics::kExact, 1);
  workers[0]->gradients.post([this] {
    be_slow();
    fill(5);
  });
  ASSERT_TRUE(step(0, 0).is_ok());
  ASSERT_TRUE(workers[0]->collective->wait_for_sums().is_ok());
  CUstream_st& gradients = workers[0]->gradients;
  EXPECT_TRUE(gradients.progress()->has_reached(gradients.posted()));
  gradients.progress()->wait_for(gradients.posted());  // also if it has failed
  const std::vector<float> expected = tree_sum();
  EXPECT_TRUE(same_bits({workers[0]->collective->reduced(), expected.size()}, expected));
}

TEST_F(NcclCollectiveTest, TheNextStepsGradientsWaitUntilTheLastOnesAreRead) {
  make(1, 3, Numerics::kExact, 1);
  fill(0);
  float* const partial = workers[0]->buffer->partial(0);
  const float written = partial[0];
  float read = -99;
  stream_of(0)->post([&] {
    be_slow();
    read = partial[0];
  });
  ASSERT_TRUE(workers[0]->collective->begin_step(tag_of(1, 0), merge).is_ok());
  workers[0]->compute.post([&] { partial[0] = -99; });
  testing::FakeCuda::get().wait_for_all();  // the queue
  workers[0]->compute.progress()->wait_for(workers[0]->compute.posted());
  EXPECT_EQ(read, written);
}

// An aborted kernel returns as if it had finished.
TEST_F(NcclCollectiveTest, SumsThatAreThereInAClosedGenerationAreNone) {
  make(1, 3, Numerics::kExact, 1);
  fill(0);
  ASSERT_TRUE(step(0, 0).is_ok());
  testing::FakeCuda::get().wait_for_all();
  workers[0]->is_closed = true;
  EXPECT_EQ(workers[0]->collective->wait_for_sums().status().code(), Code::kAborted);
}

// So the memory that train.global_batch auto leaves free is enough for NCCL (largest_slot.h).
TEST_F(NcclCollectiveTest, ConnectionsTakeNoMoreMemoryThanIsKeptForThem) {
  constexpr uint32_t kRanks = 8;
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    workers.clear();
    FakeNccl::get().reset();
    make(kRanks, kRanks, numerics, kRanks);
    fill(0);
    const uint32_t peers = numerics == Numerics::kExact ? kRanks - 1 : limits::kNcclRingPeers;
    run_ranks(kRanks, [&](uint32_t r) {
      ASSERT_TRUE(step(r, 0).is_ok());
      ASSERT_TRUE(workers[r]->collective->wait_for_sums().is_ok());
      EXPECT_LE(FakeNccl::get().most_taken(static_cast<int>(r)),
                limits::kNcclBytes + peers * limits::kNcclPeerBytes);
      // A site may remove our bound (NCCL_MAX_CTAS), so the reserve covers all channels.
      EXPECT_EQ(FakeNccl::get().most_taken(static_cast<int>(r)),
                FakeNccl::kInitBytes + peers * limits::kNcclBlocks * FakeNccl::kChannelBytes);
    });
  }
}

// Rank 1 has no sample, and still takes part in the control section.
TEST_F(NcclCollectiveTest, FastSumsTheSameValuesInAnyOrder) {
  make(3, 3, Numerics::kFast, 3);
  fill(0);
  const std::vector<float> expected = tree_sum();
  run_ranks(3, [&](uint32_t r) {
    ASSERT_TRUE(step(r, 0).is_ok());
    ASSERT_TRUE(workers[r]->collective->wait_for_sums().is_ok());
    for (uint64_t i = 0; i < kLayout.elements; ++i)
      EXPECT_NEAR(workers[r]->collective->reduced()[i], expected[i], 1e-5) << i;
  });
}

// C4: the ranks compare the hashes when they agree to the step.
TEST_F(NcclCollectiveTest, RanksInDifferentOperationsHaveDifferentHashes) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    FakeNccl::get().reset();
    workers.clear();
    make(2, 2, numerics, 2);
    fill(0);
    const auto hash_of_step = [&](uint32_t r, Step number, uint32_t bucket) {
      DeviceCollective& collective = *workers[r]->collective;
      EXPECT_TRUE(collective.begin_step(tag_of(number, 0), merge).is_ok());
      EXPECT_TRUE(collective.all_reduce(tag_of(number, bucket), {0, 512}).is_ok());
      EXPECT_TRUE(collective.all_reduce(tag_of(number, 2), {512, 1040}).is_ok());
      const auto hash = collective.wait_for_sums();
      EXPECT_TRUE(hash.is_ok()) << hash.status().message();
      return hash.is_ok() ? *hash : 0;
    };
    std::array<uint64_t, 2> hashes;
    run_ranks(2, [&](uint32_t r) { hashes[r] = hash_of_step(r, 0, /*bucket=*/r); });
    EXPECT_NE(hashes[0], hashes[1]);  // the same ranges, but not the same bucket
    run_ranks(2, [&](uint32_t r) { hashes[r] = hash_of_step(r, 1, /*bucket=*/0); });
    EXPECT_EQ(hashes[0], hashes[1]);  // nothing is left of the step before
    EXPECT_NE(hashes[0], 0u);
  }
}

TEST_F(NcclCollectiveTest, TheWaitForSumsEndsWhenTheyAreThere) {
  make(2, 2, Numerics::kExact, 2);
  fill(0);
  const std::vector<float> expected = tree_sum();
  std::promise<void> goes_on;
  stream_of(0)->post([done = goes_on.get_future().share()] { done.wait(); });
  run_ranks(3, [&](uint32_t r) {
    if (r == 2) return goes_on.set_value();
    ASSERT_TRUE(step(r, 0).is_ok());
    const auto hash = workers[r]->collective->wait_for_sums();
    EXPECT_TRUE(hash.is_ok()) << hash.status().message();
    EXPECT_EQ(std::memcmp(workers[r]->collective->reduced(), expected.data(),
                          expected.size() * sizeof(float)),
              0);
  });
}

// A peer that died leaves a kernel that does not end.
TEST_F(NcclCollectiveTest, TheWaitForSumsEndsWhenTheGenerationIsClosed) {
  for (const bool by_session : {true, false}) {
    FakeNccl::get().reset();
    workers.clear();
    make(2, 2, Numerics::kExact, 2);
    fill(0);
    ASSERT_TRUE(step(0, 0).is_ok());
    std::thread closer([&] {
      if (by_session)
        workers[0]->is_closed = true;
      else
        workers[0]->collective->abort();
    });
    EXPECT_EQ(workers[0]->collective->wait_for_sums().status().code(), Code::kAborted);
    closer.join();
  }
}

// Shows why an agreement follows the sums: rank 1 is evicted while it waits for rank 2, and its
// aborted kernel passes on garbage. Its peers see no error, but rank 1 has not agreed.
TEST_F(NcclCollectiveTest, APeersAbortLetsSumsReturnAsGarbageToWhichNobodyAgrees) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    FakeNccl::get().reset();
    workers.clear();
    make(3, 3, numerics, 3);
    fill(0);
    const std::vector<float> expected = tree_sum();
    std::latch rank_1_is_gone(1);
    run_ranks(3, [&](uint32_t r) {
      NcclWorker& worker = *workers[r];
      if (r == 2) rank_1_is_gone.wait();
      const Status began = step(r, 0);
      EXPECT_TRUE(began.is_ok()) << began.message();
      if (r == 1) {
        worker.is_closed = true;
        EXPECT_EQ(worker.collective->wait_for_sums().status().code(), Code::kAborted);
        worker.control->abort();
        workers[1].reset();
        return rank_1_is_gone.count_down();
      }
      const auto hash = worker.collective->wait_for_sums();
      EXPECT_TRUE(hash.is_ok()) << hash.status().message();
      EXPECT_NE(std::memcmp(worker.collective->reduced(), expected.data(),
                            expected.size() * sizeof(float)),
                0);
      EXPECT_EQ(worker.control->barrier(tag_of(0, 2)).code(), Code::kAborted);
    });
  }
}

TEST_F(NcclCollectiveTest, AbortEndsEveryLaterCallAndLeavesTheDeviceAlone) {
  make(2, 2, Numerics::kExact, 2);
  workers[0]->collective->abort();
  EXPECT_EQ(step(0, 0).code(), Code::kAborted);
  EXPECT_EQ(workers[0]->collective->barrier(tag_of(0, 0)).code(), Code::kAborted);
  EXPECT_EQ(workers[1]->collective->barrier(tag_of(0, 0)).code(), Code::kAborted);
  for (const std::string& line : FakeNccl::get().log()) {
    EXPECT_EQ(line.find("abort"), std::string::npos) << line;
    EXPECT_EQ(line.find("revoke"), std::string::npos) << line;
  }
}

TEST_F(NcclCollectiveTest, RefusesOperationsOfAnotherGeneration) {
  make(1, 1, Numerics::kExact, 1);
  Tag other = tag_of(0, 0);
  other.generation = kGeneration + 1;
  EXPECT_EQ(workers[0]->collective->begin_step(other, merge).code(), Code::kInternal);
}

TEST_F(NcclCollectiveTest, SmallOperationsGoOverTheHost) {
  make(2, 2, Numerics::kExact, 2);
  run_ranks(2, [&](uint32_t r) {
    const auto mine = static_cast<std::byte>(r + 1);
    std::byte all[2];
    ASSERT_TRUE(workers[r]->collective->all_gather(tag_of(0, 0), {&mine, 1}, all).is_ok());
    EXPECT_EQ(all[1], std::byte{2});
  });
}

}  // namespace
}  // namespace lockstep::nccl
