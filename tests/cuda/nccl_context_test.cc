// Communicators come and go from generation to generation.
#include "comm/collectives/nccl/nccl_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "comm/collectives/forwarding.h"
#include "tests/cuda/nccl_world.h"
#include "tests/cuda/planted_adapters.h"
#include "tests/support/fails_with.h"

namespace lockstep::nccl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeCuda;
using testing::FakeNccl;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NcclWorker;
using testing::NcclWorkers;
using ::testing::Not;

constexpr BufferLayout kLayout{.gradients = 64, .statistics = 64, .elements = 80};
using Log = std::vector<std::string>;

class NcclContextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeNccl::get().reset();
    FakeCuda::get().reset();
    make(FakeNccl::api());
  }
  void TearDown() override {
    workers.clear();
    FakeCuda::get().reset();
    EXPECT_EQ(FakeNccl::get().living(), 0);
    EXPECT_THAT(FakeNccl::get().misuses(), IsEmpty());
  }

  void make(const NcclApi& api) {
    workers.clear();
    for (MemberId id = 1; id <= 4; ++id)
      workers.push_back(std::make_unique<NcclWorker>(id, kLayout, 1, Numerics::kExact, api));
  }
  std::vector<NcclWorker*> chosen(const std::vector<size_t>& who) {
    std::vector<NcclWorker*> found;
    for (const size_t w : who) found.push_back(workers[w].get());
    return found;
  }
  void start(Generation generation, const std::vector<size_t>& who) {
    testing::start(chosen(who), generation, std::vector<uint32_t>(who.size(), 0));
  }
  std::vector<Status> try_start(Generation generation, const std::vector<size_t>& who) {
    return testing::try_start(chosen(who), generation, std::vector<uint32_t>(who.size(), 0));
  }
  // Begins a step that only this worker takes part in: it never ends.
  void begin_endless_sum(NcclWorker& worker, Generation generation) {
    const Status begun = begin_sum(worker, generation);
    ASSERT_TRUE(begun.is_ok()) << begun.message();
  }
  Status begin_sum(NcclWorker& worker, Generation generation) {
    const uint32_t ranks = worker.collective->world_size();
    std::vector<SlotRun> runs;
    for (uint32_t r = 0; r < ranks; ++r) runs.push_back({r, r + 1});
    const StepMerge merge = make_step_merge(runs, ranks, std::vector<bool>(ranks, true));
    const Tag tag{.generation = generation};
    LOCKSTEP_RETURN_IF_ERROR(worker.collective->begin_step(tag, merge));
    return worker.collective->all_reduce(tag, {0, 64});
  }
  // Ends all contexts.
  Log log_of_all() {
    workers.clear();
    return FakeNccl::get().log();
  }

  NcclWorkers workers;
};

// The first and the last line of the log with these words.
struct Span {
  size_t first = 0;
  size_t last = 0;
};
Span span_of(const Log& log, const std::string& words) {
  Span span{log.size(), 0};
  for (size_t i = 0; i < log.size(); ++i) {
    if (log[i].find(words) == std::string::npos) continue;
    span = {std::min(span.first, i), i};
  }
  EXPECT_LT(span.first, log.size()) << "nothing says " << words;
  return span;
}

// X3: memory that is registered on only one side of a transfer hangs the transfer.
TEST_F(NcclContextTest, RegistersNothingAndEndsInOrder) {
  start(1, {0});
  const Log expected = {"rank 0: init id 1", "rank 0: revoke", "rank 0: destroy"};
  EXPECT_EQ(log_of_all(), expected);
}

// X1: all ranks have stopped before one frees, and all is freed before the new communicator is
// made.
TEST_F(NcclContextTest, StopsEverywhereThenFreesThenConnectsAnew) {
  start(1, {0, 1, 2});
  begin_endless_sum(*workers[1], 1);  // with a peer that died
  start(2, {0, 1});
  const Log log = FakeNccl::get().log();
  EXPECT_LT(span_of(log, "revoke").last, span_of(log, "destroy").first);
  EXPECT_EQ(FakeNccl::get().living(), 3);  // two new ones, and the dead worker's
  for (const char* rank : {"rank 0: ", "rank 1: "})
    EXPECT_LT(span_of(log, std::string(rank) + "destroy").last,
              span_of(log, std::string(rank) + "init id 2").first);
}

// Sees the log when its rank comes to the first barrier of a generation.
class SeesBarrier final : public Forwarding<Collective> {
 public:
  SeesBarrier(std::unique_ptr<Collective> inner, Log* seen)
      : Forwarding(std::move(inner)), seen_(seen) {}
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    if (seen_->empty()) *seen_ = FakeNccl::get().log();
    return inner().all_gather(tag, mine, all);
  }

 private:
  Log* const seen_;
};

TEST_F(NcclContextTest, ARankComesToTheBarrierStoppedAndWithItsMemoryStillThere) {
  start(1, {0});
  Log seen;
  auto control = make_loopback(2, {workers[0]->buffer.get()});
  ASSERT_TRUE(
      workers[0]
          ->connect(2, {1}, {0}, std::make_unique<SeesBarrier>(std::move(control.front()), &seen))
          .is_ok());
  EXPECT_THAT(seen, Contains("rank 0: revoke"));
  EXPECT_THAT(seen, Not(Contains("rank 0: destroy")));
  EXPECT_THAT(FakeNccl::get().log(), Contains("rank 0: destroy"));
}

TEST_F(NcclContextTest, AbortsEverywhereBeforeItConnectsAnewIfNcclCannotRevoke) {
  make(FakeNccl::api_without_revoke());
  start(1, {0, 1});
  begin_endless_sum(*workers[0], 1);
  start(2, {0, 1});
  const Log log = FakeNccl::get().log();
  EXPECT_LT(span_of(log, "abort").last, span_of(log, "init id 2").first);
}

TEST_F(NcclContextTest, ANewMemberBeginsWithTheOthers) {
  start(1, {0, 1});
  start(2, {0, 1, 3});
  EXPECT_THAT(FakeNccl::get().log(), Contains("rank 2: init id 2"));
}

// A kernel that still runs would write to freed memory.
TEST_F(NcclContextTest, AWorkerThatLeavesEndsItsWorkBeforeItsMemoryGoes) {
  start(1, {0, 1});
  begin_endless_sum(*workers[0], 1);
  workers[0].reset();
  EXPECT_EQ(FakeNccl::get().living(), 1);
  begin_endless_sum(*workers[1], 1);  // now the data of its peer would be there
}

// NCCL's calls make a context on the calling thread's device.
TEST(NcclContextDevice, TheSideThreadUsesTheWorkersDevice) {
  FakeNccl::get().reset();
  std::thread training([] {
    ASSERT_EQ(cudaSetDevice(3), cudaSuccess);
    FakeCuda::get().reset();
    NcclWorker worker(1, kLayout, 1, Numerics::kExact);
    for (const Generation generation : {Generation{1}, Generation{2}}) {
      auto control = make_loopback(generation, {worker.buffer.get()});
      EXPECT_TRUE(worker.connect(generation, {1}, {0}, std::move(control.front())).is_ok());
    }
  });
  training.join();
  EXPECT_THAT(FakeCuda::get().contexts(), ElementsAre(3));
  FakeCuda::get().reset();
  EXPECT_EQ(FakeNccl::get().living(), 0);
}

TEST_F(NcclContextTest, AFailedInitEndsTheGenerationAndLeavesNothing) {
  FakeNccl::get().outcome = ncclSystemError;
  for (const Status& status : try_start(1, {0, 1})) EXPECT_EQ(status.code(), Code::kAborted);
  FakeNccl::get().outcome = ncclSuccess;
  start(2, {0, 1});
  EXPECT_EQ(FakeNccl::get().living(), 2);
}

// NCCL connects to a peer at the first transfer, and tells no other rank.
TEST_F(NcclContextTest, AConnectionForWhichTheGpuHasNoMemoryIsAnErrorOfThisWorker) {
  start(1, {0, 1});
  FakeNccl::get().gpu_bytes = FakeNccl::kInitBytes;
  EXPECT_EQ(begin_sum(*workers[0], 1).code(), Code::kInternal);
  EXPECT_TRUE(workers[1]->collective->barrier({.generation = 1}).code() == Code::kAborted);
  FakeNccl::get().gpu_bytes = FakeNccl::kInitBytes / 2;
  for (const Status& status : try_start(2, {0, 1})) EXPECT_EQ(status.code(), Code::kInternal);
  FakeNccl::get().gpu_bytes = UINT64_MAX;
  start(3, {0, 1});
}

// A stream takes a bounded number of works. With more the call waits.
TEST_F(NcclContextTest, ARankWhoseStreamIsFullIsToldOfOnceItsGenerationIsClosed) {
  std::promise<Status> told;
  workers[0] = std::make_unique<NcclWorker>(
      1, kLayout, 1, Numerics::kExact, FakeNccl::api(),
      WatchOptions{.told = [&](const Status& why) { told.set_value(why); }, .looks = 2});
  start(1, {0, 1});
  auto* const stream = static_cast<cudaStream_t>(workers[0]->queue->stream());
  std::promise<void> goes_on;
  stream->post([until = goes_on.get_future().share()] { until.wait(); });
  while (stream->queued() > 0) std::this_thread::yield();
  for (size_t i = 0; i < CUstream_st::kQueued; ++i) stream->post([] {});
  std::thread training([&] { (void)begin_sum(*workers[0], 1); });
  while (stream->waiting() == 0) std::this_thread::yield();
  workers[0]->is_closed = true;
  EXPECT_EQ(told.get_future().get().code(), Code::kInternal);
  goes_on.set_value();
  training.join();
  workers[0].reset();  // the worker ends before `told` does
}

// A peer's death changes the members, so it cannot be the cause between the same ones.
TEST_F(NcclContextTest, NcclThatFailsBetweenTheSameMembersAgainAndAgainIsAnErrorOfThisWorker) {
  FakeNccl::get().outcome = ncclSystemError;
  Generation generation = 0;
  const auto try_between = [&](const std::vector<MemberId>& members) {
    auto control = make_loopback(++generation, {workers[0]->buffer.get()});
    return workers[0]->connect(generation, members, {0}, std::move(control.front()));
  };
  EXPECT_EQ(try_between({1, 2, 3}).code(), Code::kAborted);
  EXPECT_EQ(try_between({1, 2, 3}).code(), Code::kAborted);
  EXPECT_EQ(try_between({1, 2}).code(), Code::kAborted);
  EXPECT_EQ(try_between({1, 2}).code(), Code::kAborted);
  EXPECT_THAT(try_between({1, 2}),
              FailsWith(Code::kInternal, Says("3 times"), Advises("nccl.txt", "comm.backend")));
}

// X5. Rank 1's adapter fails, rank 0 finds a remote error, rank 2 nothing.
TEST_F(NcclContextTest, ARankWhoseSideFailsUnderLoadAgainAndAgainIsNamedAndLeaves) {
  Generation generation = 0;
  const auto break_sums = [&](const std::vector<size_t>& who) {
    start(++generation, who);
    FakeNccl::get().fail(1, ncclSystemError);
    FakeNccl::get().fail(0, ncclRemoteError);
    for (const size_t w : {who[1], who[0]})
      EXPECT_EQ(workers[w]->collective->wait_for_sums().status().code(), Code::kAborted);
    if (who.size() > 2) {
      EXPECT_TRUE(workers[who[2]]->collective->wait_for_sums().is_ok());
    }
    FakeNccl::get().heal();
  };
  break_sums({0, 1, 2});
  break_sums({0, 1, 2});
  break_sums({0, 1});  // other members
  for (int i = 0; i < 3; ++i) break_sums({0, 1, 2});
  const std::vector<Status> found = try_start(++generation, {0, 1, 2});
  EXPECT_THAT(found[1], FailsWith(Code::kInternal, Says("3 times", "rank 1 (member 2)"),
                                  Advises("network adapter", "nccl.txt")));
  for (const size_t w : {0, 2}) EXPECT_THAT(found[w], FailsWith(Code::kAborted));
  start(++generation, {0, 2});
}

// X5. Over InfiniBand all ranks find remote errors. Ranks 1 and 2 are on one machine, whose adapter
// loses its link again and again, and rank 2's GPU is the one next to it.
TEST_F(NcclContextTest, ARankWhoseAdapterLosesItsLinkIsNamedAlthoughAllFindRemoteErrors) {
  const testing::PlantedAdapters adapters;
  adapters.plant_gpu("pci0000:00/0000:00:01.0/0000:30:00.0");
  adapters.plant_gpu("pci0000:80/0000:80:01.0/0000:b0:00.0");
  adapters.plant("mlx5_0", "pci0000:00/0000:00:01.0/0000:31:00.0");
  adapters.plant("mlx5_5", "pci0000:80/0000:80:01.0/0000:b1:00.0");
  for (const auto& [w, pci] : {std::pair(1, "0000:30:00.0"), std::pair(2, "0000:B0:00.0")})
    workers[w] = std::make_unique<NcclWorker>(MemberId(w) + 1, make_plain_buffer(kLayout, 1),
                                              Numerics::kExact, FakeNccl::api(), false,
                                              WatchOptions{}, pci, adapters.path());
  Generation generation = 0;
  for (int times_down = 1; times_down <= 3; ++times_down) {
    start(++generation, {0, 1, 2});
    adapters.set("mlx5_5", "4: ACTIVE", times_down);
    for (const int rank : {0, 1, 2}) FakeNccl::get().fail(rank, ncclRemoteError);
    // This call ends the wait of the ranks that have not looked yet.
    EXPECT_EQ(workers[0]->collective->wait_for_sums().status().code(), Code::kAborted);
    FakeNccl::get().heal();
  }
  const std::vector<Status> found = try_start(++generation, {0, 1, 2});
  EXPECT_THAT(found[2],
              FailsWith(Code::kInternal, Says("3 times", "rank 2 (member 3)", "port 1 of mlx5_5"),
                        Advises("network adapter", "nccl.txt")));
  for (const size_t w : {0, 1}) EXPECT_THAT(found[w], FailsWith(Code::kAborted));
}

TEST_F(NcclContextTest, AnOlderConnectionThatDoesNotEndIsAnErrorOfThisWorkerByTheDeadline) {
  start(1, {0});
  FakeNccl::get().hang(true);
  workers[0]->deadline_ms = 20;
  const Status status = try_start(2, {0}).front();
  EXPECT_THAT(status, FailsWith(Code::kInternal, Says("20 ms"), Advises("start again")));
  EXPECT_THAT(FakeNccl::get().log(), Not(Contains(HasSubstr("init id 2"))));
  FakeNccl::get().hang(false);
  workers[0]->deadline_ms = 20'000;
  start(3, {0});
}

TEST_F(NcclContextTest, AGenerationThatIsClosedWaitsForNoOlderConnection) {
  start(1, {0});
  FakeNccl::get().hang(true);
  workers[0]->is_closed = true;
  EXPECT_EQ(try_start(2, {0}).front().code(), Code::kAborted);
  FakeNccl::get().hang(false);
  workers[0]->is_closed = false;
  start(3, {0});
}

// X6. None of our waits ends the call, neither in connect() nor in a step.
TEST_F(NcclContextTest, ACallThatDoesNotReturnIsToldOfOnceItsGenerationIsClosed) {
  for (const std::string function : {"init", "group_end"}) {
    std::promise<Status> told;
    workers[0] = std::make_unique<NcclWorker>(
        1, kLayout, 1, Numerics::kExact, FakeNccl::api(),
        WatchOptions{.told = [&](const Status& why) { told.set_value(why); }, .looks = 2});
    if (function == "group_end") start(1, {0, 1});
    FakeNccl::get().block(0, function);
    std::thread training([&] {
      if (function == "group_end")
        (void)begin_sum(*workers[0], 1);
      else
        (void)try_start(1, {0, 1});
    });
    FakeNccl::get().wait_until_blocked();
    workers[0]->is_closed = true;
    EXPECT_EQ(told.get_future().get().code(), Code::kInternal);
    FakeNccl::get().block(0, "");
    training.join();
    workers[0].reset();  // the worker ends before `told` does
  }
}

}  // namespace
}  // namespace lockstep::nccl
