// comm.backend auto over a stand-in for NCCL: all ranks take the same way, and a failure costs its
// time once.
#include "comm/collectives/device_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/cuda/nccl_world.h"

namespace lockstep::nccl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeNccl;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NcclWorker;
using ::testing::Not;
using testing::run_ranks;

constexpr BufferLayout kLayout{.gradients = 256, .statistics = 256, .elements = 272};
constexpr int kLimitMs = 20'000;
constexpr int kShortLimitMs = 1500;  // for one rank that is never ready, and others that soon are
constexpr const char* kNotDone = "not done after 1500 ms";
using Nodes = std::vector<uint32_t>;

struct Worker {
  explicit Worker(MemberId id, Numerics numerics = Numerics::kExact, int limit_ms = kLimitMs,
                  const std::string& bus = "", const std::string& library = "2.28.9",
                  const BufferLayout& layout = kLayout, int rank_limit_ms = 0)
      : nccl(id, layout, 1, numerics),
        trial({.connect =
                   [this](DeviceGeneration next) { return nccl.context.connect(std::move(next)); },
               .buffer = nccl.buffer.get(),
               .memory = {[](float* to, std::span<const float> from) {
                            std::copy(from.begin(), from.end(), to);
                            return Status::ok();
                          },
                          [](std::span<float> to, const float* from) {
                            std::copy_n(from, to.size(), to.data());
                            return Status::ok();
                          }},
               .is_exact = numerics == Numerics::kExact,
               .clock = nccl.clock,
               .limit_ms = limit_ms,
               .rank_limit_ms = rank_limit_ms,
               .place = {bus, ""},
               .library = library,
               .note = [this](const std::string& what) { notes.push_back(what); },
               .remember = [this](const std::string& why) { remembered.push_back(why); }}) {}

  NcclWorker nccl;
  std::vector<std::string> notes;
  std::vector<std::string> remembered;
  DeviceTrial trial;
  DeviceTrial::Connection made;
  Status status;
};

class DeviceTrialTest : public ::testing::Test {
 protected:
  void SetUp() override { FakeNccl::get().reset(); }

  void make(uint32_t count, Numerics numerics = Numerics::kExact, int limit_ms = kLimitMs,
            const std::string& bus = "", const BufferLayout& layout = kLayout) {
    for (uint32_t r = 0; r < count; ++r)
      workers.push_back(std::make_unique<Worker>(r + 1, numerics, limit_ms, bus, "2.28.9", layout));
  }

  // Starts a generation of all workers, on one node or on `nodes`. Returns how many of them sum on
  // devices.
  size_t start(Generation generation, Nodes nodes = {}, int deadline_ms = 20'000) {
    nodes.resize(workers.size(), 0);
    std::vector<GradientBuffer*> buffers;
    std::vector<MemberId> members;
    for (auto& w : workers) {
      w->made.reset();
      buffers.push_back(w->nccl.buffer.get());
      members.push_back(w->nccl.member);
    }
    auto control = make_loopback(generation, buffers);
    run_ranks(workers.size(), [&](uint32_t r) {
      Worker& w = *workers[r];
      auto made = w.trial.connect({generation, members, nodes, control[r].get(), deadline_ms,
                                   [&w] { return w.nccl.is_closed.load(); }});
      w.status = made.status();
      if (made.is_ok()) w.made = std::move(*made);
    });
    for (size_t r = 0; r < workers.size(); ++r) workers[r]->nccl.control = std::move(control[r]);
    return static_cast<size_t>(std::count_if(workers.begin(), workers.end(),
                                             [](const auto& w) { return w->made != nullptr; }));
  }

  void expect_host_because(uint32_t rank, const std::string& why) {
    for (const auto& w : workers) {
      EXPECT_TRUE(w->status.is_ok()) << w->status.message();
      ASSERT_EQ(w->notes.size(), 1u);
      EXPECT_THAT(w->notes[0], AllOf(HasSubstr("host sums"), HasSubstr(why),
                                     HasSubstr("rank " + std::to_string(rank) + " (member " +
                                               std::to_string(workers[rank]->nccl.member) + "):")));
    }
  }

  // V2: the next generation asks nothing of NCCL.
  void expect_no_second_trial(Generation generation) {
    const size_t before = FakeNccl::get().log().size();
    EXPECT_EQ(start(generation), 0u);
    EXPECT_EQ(FakeNccl::get().log().size(), before);
    for (const auto& w : workers) EXPECT_EQ(w->notes.size(), 1u);
  }

  std::vector<std::unique_ptr<Worker>> workers;
};

TEST_F(DeviceTrialTest, ThatSumsRightLetsTheDevicesSum) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    FakeNccl::get().reset();
    workers.clear();
    make(3, numerics);
    ASSERT_EQ(start(1), 3u);
    for (const auto& w : workers) {
      ASSERT_EQ(w->notes.size(), 1u);
      EXPECT_THAT(w->notes[0], HasSubstr("sum over NCCL"));
      // Padding is zero, because no code writes it again.
      const float* partial = w->nccl.buffer->partial(0);
      EXPECT_TRUE(
          std::all_of(partial, partial + kLayout.gradients, [](float x) { return x == 0; }));
    }
    EXPECT_EQ(start(2), 3u);
  }
}

// After the trial an abort again ends the host's waits, as NcclCollective needs it.
TEST_F(DeviceTrialTest, AnAbortReachesTheHostAgainAfterTheTrial) {
  make(2);
  ASSERT_EQ(start(1), 2u);
  workers[0]->made->abort();
  EXPECT_EQ(workers[1]->nccl.control->barrier({.generation = 1}).code(), Code::kAborted);
}

TEST_F(DeviceTrialTest, OneRankThatCannotConnectMakesAllSumOnTheHost) {
  make(3);
  FakeNccl::get().cannot_init = 1;
  EXPECT_EQ(start(1), 0u);
  expect_host_because(1, "system error");
  FakeNccl::get().cannot_init = -1;
  expect_no_second_trial(2);
}

TEST_F(DeviceTrialTest, NoIdOfRank0MakesAllSumOnTheHost) {
  make(3);
  FakeNccl::get().makes_no_id = true;
  EXPECT_EQ(start(1), 0u);
  expect_host_because(0, "NCCL id");
}

// 64 GPUs take longer to connect than 8.
TEST_F(DeviceTrialTest, TheLimitGrowsWithTheWorld) {
  for (MemberId id = 1; id <= 3; ++id)
    workers.push_back(std::make_unique<Worker>(id, Numerics::kExact, kShortLimitMs, "", "2.28.9",
                                               kLayout, /*rank_limit_ms=*/100));
  FakeNccl::get().never_ready = 2;
  EXPECT_EQ(start(1), 0u);
  expect_host_because(2, "not done after 1800 ms");
}

TEST_F(DeviceTrialTest, OneRankThatHangsMakesAllSumOnTheHostAfterTheLimit) {
  make(3, Numerics::kExact, kShortLimitMs);
  FakeNccl::get().never_ready = 2;
  const SystemClock clock;
  const int64_t begin_ms = clock.monotonic_ms();
  EXPECT_EQ(start(1), 0u);
  EXPECT_GE(clock.monotonic_ms() - begin_ms, kShortLimitMs);
  expect_host_because(2, kNotDone);
  EXPECT_THAT(workers[0]->notes[0], HasSubstr("tries once more"));
  for (const auto& w : workers) w->notes.clear();
  EXPECT_EQ(start(2), 0u);
  expect_host_because(2, kNotDone);
  expect_no_second_trial(3);
}

// V2: a slow trial may be quick the next time. A joiner that knows of nothing tries with the
// others.
TEST_F(DeviceTrialTest, ATimeOutAloneIsTriedOnceMore) {
  make(2);
  FakeNccl::get().never_ready = 1;
  EXPECT_EQ(start(1, {}, kShortLimitMs), 0u);
  FakeNccl::get().never_ready = -1;
  make(1);
  EXPECT_EQ(start(2), 3u);
  FakeNccl::get().never_ready = 1;
  EXPECT_EQ(start(3, {}, kShortLimitMs), 0u);
  FakeNccl::get().never_ready = -1;
  EXPECT_EQ(start(4), 3u) << "there was a trial between the two";
}

TEST_F(DeviceTrialTest, AnotherFailureBesideATimeOutIsFinal) {
  make(3);
  FakeNccl::get().never_ready = 0;
  FakeNccl::get().cannot_init = 1;
  EXPECT_EQ(start(1, {}, kShortLimitMs), 0u);
  FakeNccl::get().never_ready = FakeNccl::get().cannot_init = -1;
  expect_no_second_trial(2);
}

// NCCL sends large transfers another way than small ones.
TEST_F(DeviceTrialTest, ABucketIsAsLargeAsAStepsIs) {
  make(2, Numerics::kExact, kLimitMs, "",
       {.gradients = 700'000, .statistics = 700'000, .elements = 700'016});
  FakeNccl::get().gets_wrong_bit = 1;
  FakeNccl::get().wrong_from_bytes = 1'000'000;
  EXPECT_EQ(start(1), 0u);
  for (const auto& w : workers) EXPECT_THAT(w->notes.at(0), HasSubstr("trial sum"));
}

// Only the trial's own end ends a wait for sums.
TEST_F(DeviceTrialTest, ASumThatDoesNotComeMakesAllSumOnTheHostAfterTheLimit) {
  make(2, Numerics::kExact, kShortLimitMs);
  FakeNccl::get().loses_data = 0;
  EXPECT_EQ(start(1), 0u);
  for (const auto& w : workers) EXPECT_THAT(w->notes.at(0), HasSubstr(kNotDone));
  EXPECT_EQ(start(2), 0u);
  FakeNccl::get().loses_data = -1;
  EXPECT_EQ(start(3), 0u) << "two in a row are enough";
}

TEST_F(DeviceTrialTest, OneWrongBitOnOneRankMakesAllSumOnTheHost) {
  make(2);
  FakeNccl::get().gets_wrong_bit = 1;
  EXPECT_EQ(start(1), 0u);
  for (const auto& w : workers) EXPECT_THAT(w->notes.at(0), HasSubstr("trial sum"));
  FakeNccl::get().gets_wrong_bit = -1;
  expect_no_second_trial(2);
}

TEST_F(DeviceTrialTest, ARankWithoutNcclSaysSoBeforeAnybodyWaits) {
  make(2);
  workers[1]->trial.fail("cannot open NCCL");
  EXPECT_EQ(start(1), 0u);
  expect_host_because(1, "cannot open NCCL");
  EXPECT_TRUE(FakeNccl::get().log().empty());
}

TEST_F(DeviceTrialTest, AJoinerLearnsOfAFailureFromTheOthers) {
  make(2);
  FakeNccl::get().cannot_init = 1;
  EXPECT_EQ(start(1), 0u);
  FakeNccl::get().reset();
  make(1);  // never tried
  EXPECT_EQ(start(2), 0u);
  EXPECT_TRUE(FakeNccl::get().log().empty());
  // Names the rank that failed, and not the rank that told of it.
  EXPECT_THAT(workers[2]->notes.at(0),
              AllOf(HasSubstr("rank 1 (member 2): "), Not(HasSubstr("rank 0"))));
}

// V2: no rank remembers a failure that a peer's death or a slow machine may have caused.
TEST_F(DeviceTrialTest, OnlyARanksOwnFailureIsRememberedForNewProcesses) {
  make(2);
  FakeNccl::get().gets_wrong_bit = 1;
  EXPECT_EQ(start(1), 0u);
  EXPECT_THAT(workers[1]->remembered, ElementsAre(HasSubstr("trial sum")));
  workers.clear();
  FakeNccl::get().reset();
  make(2);
  FakeNccl::get().outcome = ncclUnhandledCudaError;
  EXPECT_EQ(start(1), 0u);
  for (const auto& w : workers)
    EXPECT_THAT(w->remembered, ElementsAre(HasSubstr("connect the GPUs")));
  for (const ncclResult_t of_a_peer : {ncclSystemError, ncclRemoteError}) {
    workers.clear();
    FakeNccl::get().reset();
    make(2);
    FakeNccl::get().outcome = of_a_peer;
    EXPECT_EQ(start(1), 0u);
    for (const auto& w : workers) EXPECT_THAT(w->remembered, IsEmpty());
  }
  workers.clear();
  FakeNccl::get().reset();
  make(2, Numerics::kExact, kShortLimitMs);
  FakeNccl::get().never_ready = 0;
  EXPECT_EQ(start(1), 0u);
  for (const auto& w : workers) EXPECT_THAT(w->remembered, IsEmpty());
}

TEST_F(DeviceTrialTest, AFailureAfterATrialThatWasRightIsNotRemembered) {
  make(2);
  ASSERT_EQ(start(1), 2u);
  FakeNccl::get().outcome = ncclUnhandledCudaError;
  EXPECT_EQ(start(2), 0u);
  for (const auto& w : workers) EXPECT_THAT(w->remembered, IsEmpty());
}

// V4
TEST_F(DeviceTrialTest, RanksOfOneMachineThatShareAGpuDoNotTry) {
  make(3, Numerics::kExact, kLimitMs, "0000:3b:00.0");
  EXPECT_EQ(start(1, {0, 1, 1}), 0u);
  EXPECT_TRUE(FakeNccl::get().log().empty());
  for (const auto& w : workers)
    EXPECT_THAT(w->notes.at(0),
                AllOf(HasSubstr("rank 2 (member 3)"), HasSubstr("rank 1 (member 2)"),
                      HasSubstr("GPU 0000:3b:00.0"), Not(HasSubstr("rank 0"))));
  EXPECT_EQ(start(2, {0, 1, 2}), 3u) << "the same bus of three machines";
}

// V4
TEST_F(DeviceTrialTest, RanksWithOtherVersionsOfNcclDoNotTryAndTheLineNamesTheMember) {
  make(2);
  workers.push_back(std::make_unique<Worker>(7, Numerics::kExact, kLimitMs, "", "2.27.3"));
  EXPECT_EQ(start(1), 0u);
  EXPECT_TRUE(FakeNccl::get().log().empty());
  for (const auto& w : workers) {
    EXPECT_TRUE(w->status.is_ok()) << w->status.message();
    ASSERT_EQ(w->notes.size(), 1u);
    EXPECT_THAT(w->notes[0], AllOf(HasSubstr("host sums"), HasSubstr("rank 2 (member 7)"),
                                   HasSubstr("2.27.3"), HasSubstr("2.28.9")));
    EXPECT_THAT(w->remembered, IsEmpty());
  }
  EXPECT_EQ(start(2), 0u);
  EXPECT_EQ(workers[0]->notes.size(), 1u) << "the same again is no news";
  workers.pop_back();
  EXPECT_EQ(start(3), 2u) << "the other one is gone";
}

// V4
TEST_F(DeviceTrialTest, WhenTheRankWithoutNcclIsGoneTheOthersTry) {
  make(3);
  workers[1]->trial.fail("cannot open NCCL");
  EXPECT_EQ(start(1), 0u);
  expect_host_because(1, "cannot open NCCL");
  workers.erase(workers.begin() + 1);
  EXPECT_EQ(start(2), 2u);
}

TEST_F(DeviceTrialTest, AGenerationThatIsClosedMeanwhileSaysNothingOfTheDevices) {
  make(2);
  FakeNccl::get().never_ready = 0;
  for (const auto& w : workers) w->nccl.is_closed = true;
  EXPECT_EQ(start(1), 0u);
  EXPECT_EQ(workers[0]->status.code(), Code::kAborted);
  FakeNccl::get().reset();
  for (const auto& w : workers) w->nccl.is_closed = false;
  EXPECT_EQ(start(2), 2u);
}

TEST(DeviceTrialLimit, IsAsThePagesSay) {
  const SystemClock clock;
  const DeviceTrial::Parts parts{.connect = {},
                                 .memory = {},
                                 .clock = clock,
                                 .place = {},
                                 .library = {},
                                 .note = {},
                                 .remember = {}};
  EXPECT_EQ(parts.limit_ms, 20'000);
  EXPECT_EQ(parts.rank_limit_ms, 250);
}

TEST_F(DeviceTrialTest, AWorkerThatIsAloneTriesNothing) {
  make(1);
  EXPECT_EQ(start(1), 0u);
  EXPECT_TRUE(workers[0]->notes.empty());
  EXPECT_TRUE(FakeNccl::get().log().empty());
}

}  // namespace
}  // namespace lockstep::nccl
