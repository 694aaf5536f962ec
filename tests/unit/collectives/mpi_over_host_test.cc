// Which way a generation goes where some or all of its ranks may be in an MPI world. MPI itself is
// a stand-in: one meeting of all ranks in this process (tests/unit/mpi has the real one).
#include "comm/collectives/mpi/mpi_over_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "comm/base/log.h"
#include "tests/unit/collectives/world.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using testing::kConnectMs;
using testing::layout_of;
using testing::run_ranks;
using testing::tag_of;

constexpr uint32_t kRanks = 3;
constexpr uint64_t kGradients = 160;

// Loopback between all that open the same generation, as ranks of a world.
struct FakeWorld {
  std::mutex mutex;
  std::vector<std::unique_ptr<GradientBuffer>> buffers;  // of the ranks' stand-ins
  std::map<Generation, std::vector<std::unique_ptr<Collective>>> generations;
  std::map<Generation, std::vector<int>> orders;
};

class FakeLane final : public MpiLane {
 public:
  FakeLane(std::shared_ptr<FakeWorld> world, uint64_t id, uint32_t rank)
      : world_(std::move(world)), id_(id), rank_(rank) {}

  uint64_t world() const override { return id_; }
  uint32_t rank() const override { return rank_; }
  bool is_open() const override { return open_; }

  Result<std::unique_ptr<Collective>> open(Generation generation, uint32_t rank,
                                           std::vector<int> mpi_ranks, GradientBuffer*) override {
    std::lock_guard lock(world_->mutex);
    if (generation <= closed_) return Status(Code::kAborted, "closed");
    auto& collectives = world_->generations[generation];
    if (collectives.empty()) {
      std::vector<GradientBuffer*> raw;
      for (size_t r = 0; r < mpi_ranks.size(); ++r)
        raw.push_back(world_->buffers.emplace_back(make_plain_buffer(layout_of(16, 0), 1)).get());
      collectives = make_loopback(generation, raw);
      world_->orders[generation] = mpi_ranks;
    }
    EXPECT_EQ(world_->orders[generation], mpi_ranks) << "all ranks have the same list";
    return std::move(collectives[rank]);
  }

  void close(Generation through) noexcept override {
    std::lock_guard lock(world_->mutex);
    closed_ = std::max(closed_, through);
  }

  void end() { open_ = false; }

 private:
  const std::shared_ptr<FakeWorld> world_;
  const uint64_t id_;
  const uint32_t rank_;
  std::atomic<bool> open_{true};
  Generation closed_ = 0;
};

class MpiOverHostTest : public ::testing::Test {
 protected:
  // worlds[r]: which world rank r is in; 0: none. Its rank there counts backwards.
  void make(const std::vector<uint64_t>& worlds) {
    for (uint32_t r = 0; r < worlds.size(); ++r) {
      auto host = HostContext::create({.token = "secret"});
      ASSERT_TRUE(host.is_ok()) << host.status().message();
      std::unique_ptr<FakeLane> lane;
      if (worlds[r] != 0)
        lane =
            std::make_unique<FakeLane>(fake_, worlds[r], static_cast<uint32_t>(worlds.size()) - r);
      lanes_.push_back(lane.get());
      contexts_.push_back(prefer_mpi(std::move(*host), std::move(lane), *logger_));
      auto buffer = contexts_.back()->make_buffer(layout_of(kGradients, 0), 1);
      ASSERT_TRUE(buffer.is_ok()) << buffer.status().message();
      buffers_.push_back(std::move(*buffer));
    }
  }

  void connect(Generation generation) {
    collectives_.clear();
    std::vector<PeerAddress> peers;
    for (size_t r = 0; r < contexts_.size(); ++r)
      peers.push_back({100 + r, contexts_[r]->address()});
    collectives_.resize(contexts_.size());
    run_ranks(static_cast<uint32_t>(contexts_.size()), [&](uint32_t r) {
      auto connected = contexts_[r]->connect(generation, r, 100 + r, peers, kConnectMs);
      ASSERT_TRUE(connected.is_ok()) << connected.status().message();
      collectives_[r] = std::move(*connected);
    });
  }

  bool is_over_mpi(Generation generation) const { return fake_->orders.count(generation) > 0; }

  // All ranks together.
  std::vector<Status> barrier(Generation generation, Step step) {
    std::vector<Status> ends(contexts_.size(), Status::ok());
    run_ranks(static_cast<uint32_t>(contexts_.size()),
              [&](uint32_t r) { ends[r] = collectives_[r]->barrier(tag_of(generation, step)); });
    return ends;
  }

  void expect_works(Generation generation) {
    for (const Status& end : barrier(generation, 1)) EXPECT_TRUE(end.is_ok()) << end.message();
  }

  const std::unique_ptr<Logger> logger_ = null_logger();
  const std::shared_ptr<FakeWorld> fake_ = std::make_shared<FakeWorld>();
  std::vector<FakeLane*> lanes_;
  std::vector<std::unique_ptr<HostContext>> contexts_;
  std::vector<std::unique_ptr<GradientBuffer>> buffers_;
  std::vector<std::unique_ptr<Collective>> collectives_;
};

TEST_F(MpiOverHostTest, RanksOfOneWorldGoOverItInTheGenerationsOrder) {
  make({7, 7, 7});
  connect(1);
  ASSERT_TRUE(is_over_mpi(1));
  EXPECT_THAT(fake_->orders[1], ElementsAre(3, 2, 1));
  expect_works(1);
}

TEST_F(MpiOverHostTest, OneThatIsInNoWorldTakesAllOverTheHost) {
  make({7, 0, 7});
  connect(1);
  EXPECT_FALSE(is_over_mpi(1));
  expect_works(1);
}

TEST_F(MpiOverHostTest, RanksOfTwoWorldsGoOverTheHost) {
  make({7, 7, 8});
  connect(1);
  EXPECT_FALSE(is_over_mpi(1));
  expect_works(1);
}

TEST_F(MpiOverHostTest, AWorldThatIsOverForOneIsOverForAll) {
  make({7, 7, 7});
  connect(1);
  EXPECT_TRUE(is_over_mpi(1));
  lanes_[2]->end();
  connect(2);
  EXPECT_FALSE(is_over_mpi(2));
  expect_works(2);
}

TEST_F(MpiOverHostTest, OneAloneMeetsNobody) {
  make({7});
  connect(1);
  EXPECT_FALSE(is_over_mpi(1));
  expect_works(1);
}

TEST_F(MpiOverHostTest, SumsAreMadeOverTheHostToo) {
  make({7, 7, 0});
  connect(1);
  std::vector<SlotRun> runs;
  for (uint32_t r = 0; r < kRanks; ++r) runs.push_back({r, r + 1});
  const StepMerge merge = make_step_merge(runs, kRanks, std::vector<bool>(kRanks, true));
  run_ranks(kRanks, [&](uint32_t r) {
    ASSERT_TRUE(collectives_[r]->begin_step(tag_of(1, 0), merge).is_ok());
    std::fill_n(buffers_[r]->partial(0), kGradients, static_cast<float>(r + 1));
    ASSERT_TRUE(collectives_[r]->all_reduce(tag_of(1, 0), {0, kGradients}).is_ok());
    EXPECT_EQ(collectives_[r]->reduced()[kGradients - 1], 6.0F);
  });
}

TEST_F(MpiOverHostTest, AnAbortReachesBothConnections) {
  make({7, 7, 7});
  connect(1);
  collectives_[0]->abort();
  for (const Status& end : barrier(1, 1)) EXPECT_EQ(end.code(), Code::kAborted);
}

TEST_F(MpiOverHostTest, AClosedGenerationIsNotOpened) {
  make({7, 7});
  contexts_[0]->close(1);
  EXPECT_EQ(contexts_[0]
                ->connect(1, 0, 100, {{100, {}}, {101, contexts_[1]->address()}}, kConnectMs)
                .status()
                .code(),
            Code::kAborted);
}

}  // namespace
}  // namespace lockstep
