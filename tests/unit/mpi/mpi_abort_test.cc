// Tests how operations over MPI end when they cannot end well.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <optional>

#include "comm/collectives/mpi/mpi_messages.h"
#include "comm/collectives/sum_slice.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/mpi/mpi_world.h"

namespace lockstep {
namespace {

using testing::layout_of;
using testing::MpiTest;
using testing::tag_of;

constexpr std::chrono::seconds kNever{60};

// A pipe through which one rank tells rank 0 something: while a thread of that is in an operation,
// no other one may call MPI.
class Sign {
 public:
  explicit Sign(uint32_t rank) {
    if (rank == 0) {
      directory_.emplace();
      directory_->path("sign").copy(pipe_, sizeof pipe_ - 1);
      EXPECT_EQ(::mkfifo(pipe_, 0600), 0);
      reader_ = ::open(pipe_, O_RDONLY | O_NONBLOCK);
    }
    MPI_Bcast(pipe_, sizeof pipe_, MPI_CHAR, 0, MPI_COMM_WORLD);
  }
  ~Sign() {
    if (reader_ >= 0) ::close(reader_);
  }
  Sign(const Sign&) = delete;
  Sign& operator=(const Sign&) = delete;

  void give() const { std::ofstream(pipe_).put('.'); }
  // REQUIRES: rank 0.
  void wait() const {
    pollfd told{reader_, POLLIN, 0};
    EXPECT_EQ(::poll(&told, 1, std::chrono::milliseconds(kNever).count()), 1) << "nobody gave it";
  }

 private:
  std::optional<TemporaryDirectory> directory_;  // of rank 0
  char pipe_[256] = {};
  int reader_ = -1;
};

class MpiAborts : public MpiTest {
 protected:
  MpiAborts() {
    std::vector<SlotRun> runs;
    for (uint32_t r = 0; r < ranks_; ++r) runs.push_back({r, r + 1});
    merge_ = make_step_merge(runs, ranks_, std::vector<bool>(ranks_, true));
    make_buffer(layout_of(kGradients, 0), 1);
  }

  // Starts `operation` on another thread, sees that it waits, and aborts it from this one after
  // `until` has returned.
  Status end_of_aborted(
      const std::function<Status()>& operation, const std::function<void()>& until = [] {}) {
    auto blocked = std::async(std::launch::async, operation);
    until();
    EXPECT_EQ(blocked.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    collective_->abort();
    EXPECT_EQ(blocked.wait_for(kNever), std::future_status::ready);
    return blocked.get();
  }

  static constexpr uint64_t kGradients = 1'600'000;
  StepMerge merge_;
};

TEST_F(MpiAborts, AnAbortEndsAnOperationThatWaitsForPeersAndEveryLaterOne) {
  start(1);
  if (rank_ != 0) return;  // the others never come
  ASSERT_TRUE(collective_->begin_step(tag_of(1, 0), merge_).is_ok());
  const Status end = end_of_aborted([&] {
    return collective_->all_reduce(tag_of(1, 0), {0, kGradients});
  });
  EXPECT_EQ(end.code(), Code::kAborted);
  EXPECT_EQ(collective_->barrier(tag_of(1, 1)).code(), Code::kAborted);
  EXPECT_EQ(collective_->begin_step(tag_of(1, 1), merge_).code(), Code::kAborted);
}

// The last rank says what it is about to do, and stops: the others wait in the middle of it.
TEST_F(MpiAborts, AnAbortEndsAnOperationWhoseDataDoNotComeAndItsPeersHearOfIt) {
  const Sign met(rank_);
  if (rank_ + 1 == ranks_) {
    auto world = std::make_shared<mpi::World>();
    world->comm = comm_;
    world->size = static_cast<int>(ranks_);
    std::vector<int> order;
    for (uint32_t r = 0; r < ranks_; ++r) order.push_back(static_cast<int>(r));
    auto messages = std::make_shared<mpi::Messages>(world, order, rank_, 1);
    host::OpDescriptor op;
    op.mark = host::make_mark(1, 1);
    op.end = kGradients;
    op.merge_hash = hash_of(merge_);
    op.phase = static_cast<uint32_t>(Phase::kTrain);
    op.kind = host::OpKind::kAllReduce;
    EXPECT_TRUE(messages->meet(op).is_ok());
    met.give();
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(messages->meet(op).code(), Code::kAborted);
    messages->close();
    return;
  }
  start(1);
  ASSERT_TRUE(collective_->begin_step(tag_of(1, 0), merge_).is_ok());
  const auto reduce = [&] { return collective_->all_reduce(tag_of(1, 0), {0, kGradients}); };
  const Status end = rank_ == 0 ? end_of_aborted(reduce, [&] { met.wait(); }) : reduce();
  EXPECT_EQ(end.code(), Code::kAborted);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(MpiAborts, AnAbortIsSeenByPeersThatWait) {
  start(1);
  if (rank_ == 0) {
    collective_->abort();
    EXPECT_EQ(collective_->barrier(tag_of(1, 0)).code(), Code::kAborted);
  } else {
    EXPECT_EQ(collective_->barrier(tag_of(1, 0)).code(), Code::kAborted);
  }
}

TEST_F(MpiAborts, DifferentTagsAreAnErrorAndNeverAHang) {
  const std::vector<std::function<Status(uint32_t)>> operations = {
      [&](uint32_t r) {
        return collective_->all_reduce(tag_of(1, 0, r == 1 ? 1 : 0), {0, 1600});
      },
      [&](uint32_t r) {
        return collective_->all_reduce(tag_of(1, 0), {0, r == 1 ? 1600U : 800U});
      },
      [&](uint32_t r) {
        return r == 0 ? collective_->barrier(tag_of(1, 0))
                      : collective_->all_reduce(tag_of(1, 0), {0, 1600});
      },
      [&](uint32_t r) { return collective_->barrier(tag_of(1, r)); }};
  for (const auto& operation : operations) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    lane_ = make_lane(false);
    make_buffer(layout_of(kGradients, 0), 1);
    start(1);
    ASSERT_TRUE(collective_->begin_step(tag_of(1, 0), merge_).is_ok());
    const Status end = operation(rank_);
    EXPECT_FALSE(end.is_ok());
    int explained = end.code() == Code::kInternal ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &explained, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_EQ(explained, 1);
  }
}

TEST_F(MpiAborts, ACloseAbortsItsGenerationAndTheWorldMakesNoOther) {
  start(3);
  lane_->close(2);
  EXPECT_TRUE(collective_->barrier(tag_of(3, 0)).is_ok());
  lane_->close(3);
  EXPECT_EQ(collective_->barrier(tag_of(3, 1)).code(), Code::kAborted);
  EXPECT_EQ(connect(3, 0, {static_cast<int>(rank_)}).code(), Code::kAborted);
  EXPECT_FALSE(lane_->is_open());
  EXPECT_EQ(connect(4, 0, {static_cast<int>(rank_)}).code(), Code::kAborted);
}

TEST_F(MpiAborts, AGenerationThatIsOverWithoutAnAbortMayBeClosed) {
  start(1);
  ASSERT_TRUE(collective_->barrier(tag_of(1, 0)).is_ok());
  collective_.reset();
  lane_->close(1);
  EXPECT_TRUE(lane_->is_open());
  start(2);
  EXPECT_TRUE(collective_->barrier(tag_of(2, 0)).is_ok());
}

}  // namespace
}  // namespace lockstep
