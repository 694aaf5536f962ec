// The result as a window of NCCL's: the ranks that have one, and the ranks that get none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cuda/nccl_world.h"
#include "tests/support/fails_with.h"

namespace lockstep::nccl {
namespace {

using testing::FakeCuda;
using testing::FakeNccl;
using testing::NcclWorker;
using testing::NcclWorkers;
using testing::PeerBuffer;
using testing::run_ranks;

constexpr BufferLayout kWindowLayout{.gradients = 64, .statistics = 64, .elements = 80};
constexpr uint32_t kRanks = 3;

class NcclWindow : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeNccl::get().reset();
    FakeCuda::get().reset();
  }
  void TearDown() override {
    workers_.clear();
    FakeCuda::get().reset();
    EXPECT_EQ(FakeNccl::get().living(), 0);
    EXPECT_THAT(FakeNccl::get().misuses(), ::testing::IsEmpty());
  }

  void make(Numerics numerics, uint32_t with_peer_memory = kRanks) {
    for (uint32_t r = 0; r < kRanks; ++r) {
      const bool is_mappable = r < with_peer_memory;
      auto memory = is_mappable ? std::make_unique<PeerBuffer>(kWindowLayout, 1)
                                : make_plain_buffer(kWindowLayout, 1);
      workers_.push_back(std::make_unique<NcclWorker>(1 + r, std::move(memory), numerics,
                                                      FakeNccl::api(), is_mappable));
    }
  }

  std::vector<Status> connect(Generation generation) {
    std::vector<NcclWorker*> all;
    for (const auto& worker : workers_) all.push_back(worker.get());
    return testing::try_start(all, generation, std::vector<uint32_t>(kRanks, 0));
  }
  void expect_connects(Generation generation) {
    for (const Status& status : connect(generation))
      ASSERT_TRUE(status.is_ok()) << status.message();
  }

  // Every rank gives its number; the sum is the same everywhere.
  void expect_sums(Generation generation) {
    std::vector<SlotRun> runs;
    for (uint32_t r = 0; r < kRanks; ++r) runs.push_back({r, r + 1});
    const StepMerge merge = make_step_merge(runs, kRanks, std::vector<bool>(kRanks, true));
    run_ranks(kRanks, [&](uint32_t r) {
      NcclWorker& worker = *workers_[r];
      std::fill_n(worker.buffer->partial(0), kWindowLayout.elements, static_cast<float>(r + 1));
      const Tag tag{.generation = generation, .step = 1};
      ASSERT_TRUE(worker.collective->begin_step(tag, merge).is_ok());
      ASSERT_TRUE(worker.collective->all_reduce(tag, {0, kWindowLayout.elements}).is_ok());
      ASSERT_TRUE(worker.collective->wait_for_sums().is_ok());
      for (uint64_t i = 0; i < kWindowLayout.elements; ++i)
        ASSERT_EQ(worker.collective->reduced()[i], 6.0F);
    });
  }

  static size_t times(const std::string& what) {
    const std::vector<std::string> log = FakeNccl::get().log();
    return static_cast<size_t>(std::count_if(log.begin(), log.end(), [&](const std::string& line) {
      return line.find(": " + what) != std::string::npos;
    }));
  }

  NcclWorkers workers_;
};

TEST_F(NcclWindow, FastRanksMapTheirResultAndUnmapItWithTheCommunicator) {
  make(Numerics::kFast);
  expect_connects(1);
  expect_sums(1);
  EXPECT_EQ(times("map"), kRanks);
  EXPECT_EQ(times("unmap"), 0);
  expect_connects(2);
  expect_sums(2);
  EXPECT_EQ(times("map"), 2 * kRanks);
  EXPECT_EQ(times("unmap"), kRanks);
}

TEST_F(NcclWindow, ExactRanksSendAndNeedNone) {
  make(Numerics::kExact);
  expect_connects(1);
  expect_sums(1);
  EXPECT_EQ(times("map"), 0);
}

// Registering is collective: no rank may begin it alone.
TEST_F(NcclWindow, OneRankWithOtherMemoryKeepsAllFromMapping) {
  make(Numerics::kFast, kRanks - 1);
  expect_connects(1);
  expect_sums(1);
  EXPECT_EQ(times("map"), 0);
}

TEST_F(NcclWindow, ALibraryWithoutWindowsSumsWithoutThem) {
  FakeNccl::get().has_windows = false;
  make(Numerics::kFast);
  expect_connects(1);
  expect_sums(1);
  expect_connects(2);
  EXPECT_EQ(times("unmap"), 0);
}

TEST_F(NcclWindow, IfOneFailsAllConnectAgainWithout) {
  make(Numerics::kFast);
  FakeNccl::get().cannot_map = 1;
  expect_connects(1);
  expect_sums(1);
  EXPECT_EQ(times("init"), 2 * kRanks);
  EXPECT_EQ(times("map"), kRanks);
  FakeNccl::get().cannot_map = -1;
  expect_connects(2);
  EXPECT_EQ(times("map"), kRanks);  // a registration that failed once is not tried again
}

TEST_F(NcclWindow, PeersThatDoNotNoticeGiveUpAtTheirDeadlineAndTheNextGenerationWorks) {
  make(Numerics::kFast);
  FakeNccl::get().cannot_map = 1;
  FakeNccl::get().notices_end = false;
  for (const auto& worker : workers_) worker->deadline_ms = 200;
  const std::vector<Status> found = connect(1);
  for (const Status& status : found) EXPECT_FALSE(status.is_ok());
  EXPECT_THAT(found[0], FailsWith(Code::kTimeout));
  for (const auto& worker : workers_) worker->deadline_ms = 20'000;
  expect_connects(2);
  expect_sums(2);
  EXPECT_EQ(times("map"), kRanks);
}

TEST_F(NcclWindow, AClosedGenerationEndsTheWait) {
  make(Numerics::kFast);
  FakeNccl::get().cannot_map = 1;
  FakeNccl::get().notices_end = false;
  // Peers wait for rank 1's window until their session closes the generation.
  std::thread closes([this] {
    while (times("map") < kRanks) std::this_thread::yield();
    for (const auto& worker : workers_) worker->is_closed = true;
  });
  for (const Status& status : connect(1)) EXPECT_THAT(status, FailsWith(Code::kAborted));
  closes.join();
}

}  // namespace
}  // namespace lockstep::nccl
