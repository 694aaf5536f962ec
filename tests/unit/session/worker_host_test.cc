// Tests what the loop's thread does to the gate, the data plane and the pending orders.
#include "worker/process/worker_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "comm/rpc/memory_transport.h"
#include "tests/support/files.h"
#include "tests/unit/session/runner_world.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Context final : public HostContext {
 public:
  HostAddress address() const override { return {}; }
  Result<std::unique_ptr<GradientBuffer>> make_buffer(const BufferLayout&, uint32_t) override {
    return Status(Code::kInternal, "not here");
  }
  Result<std::unique_ptr<Collective>> connect(Generation, uint32_t, MemberId,
                                              const std::vector<PeerAddress>&, int) override {
    return Status(Code::kInternal, "not here");
  }
  void close(Generation through) noexcept override { closed.push_back(through); }

  std::vector<Generation> closed;
};

class WorkerHostTest : public ::testing::Test {
 protected:
  rpc::SimLoop loop_;
  ApplyGate gate_;
  Mailbox mailbox_;
  Context context_;
  std::unique_ptr<Logger> logger_ = null_logger();
  WorkInHand in_hand_ = std::move(WorkInHand::make()).value();
  WorkerHost host_{{loop_, gate_, mailbox_, context_, *logger_, in_hand_, "", [](int) {}},
                   wire::JobSpec()};
};

TEST_F(WorkerHostTest, ACloseIsAnsweredAfterTheApplyInProgressAndTheDataPlaneIsClosedBefore) {
  ASSERT_TRUE(gate_.open(1, {4, Phase::kTrain}, {}));
  ASSERT_TRUE(gate_.try_enter());
  std::vector<Standing> answers;
  host_.on_close(1, [&](const Standing& standing) {
    EXPECT_THAT(context_.closed, ElementsAre(1));
    answers.push_back(standing);
  });
  loop_.run_for(5);
  EXPECT_THAT(answers, IsEmpty());
  EXPECT_THAT(context_.closed, IsEmpty());  // the apply still has the sums
  gate_.leave();
  loop_.run_for(5);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].applied->step, 5u);
}

TEST_F(WorkerHostTest, AHeartbeatTellsWhatTheDeviceHasFinishedAndWhatItWasGiven) {
  EXPECT_EQ(host_.heartbeat().step, 0u);  // nothing is built yet
  testing::ToyEngine engine(
      4, make_plain_buffer(testing::ToyEngine::kLayout, testing::ToyEngine::regions(4)));
  engine.where = {4, Phase::kEval, 2, 5, true};
  const TemporaryDirectory temporary;
  testing::WorldPort port(mailbox_);
  RunnerProbe probe;
  const auto files = posix_file_ops();
  Runner runner({wire::JobSpec(), {}, temporary.path(), {}, 20'000},
                {engine, context_, gate_, mailbox_, port, *files, probe, nullptr, *logger_,
                 [](const Status&) {}});
  host_.attach(engine, runner);
  const SessionHost::Heartbeat beat = host_.heartbeat();
  EXPECT_EQ(beat.step, 4u);
  EXPECT_EQ(beat.phase, Phase::kEval);
  EXPECT_EQ(beat.bucket, 2u);
  EXPECT_EQ(beat.enqueued, 5u);
  EXPECT_TRUE(beat.is_paused);
}

class StandingClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return ms * 1'000'000; }
  int64_t wall_ms() const override { return ms; }
  int64_t ms = 1'000;
};

// Notes go to a file, for the report: of the worker that hangs, and of those that wait for it.
TEST_F(WorkerHostTest, WhereCollectivesStandIsWrittenBeforeACloseEndsThem) {
  const TemporaryDirectory temporary;
  StandingClock clock;
  for (const bool is_told : {true, false}) {
    const std::string path =
        temporary.path() + (is_told ? "/logs/hangs.hang.json" : "/logs/waits.hang.json");
    FlightRecord flight(clock);
    HangNotes notes({flight, path, "worker-0", "n", "", 500});
    WorkerHost host(
        {loop_, gate_, mailbox_, context_, *logger_, in_hand_, "", [](int) {}, -1, &notes},
        wire::JobSpec());
    flight.begin_generation({.generation = 1, .rank = 0, .world = 2});
    Flight open(&flight, FlightOperation::kSum, {1, 12, 3});
    clock.ms += 600;
    if (is_told)
      host.on_hang();
    else
      host.on_close(1, [](const Standing&) {});
    open.end(false);                                                   // as the close does
    while (!std::filesystem::exists(path)) std::this_thread::yield();  // a thread of its own writes
    EXPECT_THAT(slurp(path), ::testing::HasSubstr("\"state\":\"running\"")) << is_told;
  }
}

TEST_F(WorkerHostTest, AnOpenGlobalBatchIsWhatTheCoordinatorSaysAndThenNothingElse) {
  wire::Registered registered;
  EXPECT_TRUE(host_.on_registered(registered).is_ok());
  registered.mutable_job()->mutable_train()->set_global_batch(64);
  EXPECT_TRUE(host_.on_registered(registered).is_ok());
  EXPECT_EQ(mailbox_.wait_for_batch(), 64u);
  EXPECT_TRUE(host_.on_registered(registered).is_ok()) << "as after any reconnect";
  registered.mutable_job()->mutable_train()->set_global_batch(128);
  EXPECT_EQ(host_.on_registered(registered).code(), Code::kUsage);
}

TEST_F(WorkerHostTest, WhoWaitsForTheGlobalBatchIsLetGoAtTheEnd) {
  host_.on_end(Status::ok(), 0);
  EXPECT_EQ(mailbox_.wait_for_batch(), std::nullopt);
}

TEST_F(WorkerHostTest, APlanIsVotedForUntilItsGenerationIsClosed) {
  host_.on_planned(2, {});
  EXPECT_TRUE(mailbox_.wants_switch(1));
  host_.on_close(2, [](const Standing&) {});
  EXPECT_FALSE(mailbox_.wants_switch(1));
}

TEST_F(WorkerHostTest, ANewIdentityStandsNowhereAndOwesNothingToOldOrders) {
  ASSERT_TRUE(gate_.open(1, {4, Phase::kTrain}, {}));
  host_.on_planned(2, {});
  host_.on_new_identity(2);
  loop_.run_for(5);
  EXPECT_EQ(host_.standing(), Standing{});
  EXPECT_THAT(context_.closed, ElementsAre(2));
  EXPECT_FALSE(mailbox_.wants_switch(1));
  EXPECT_FALSE(gate_.try_enter());
  host_.on_start(2, {});  // an order of the old life that was still on its way
  EXPECT_FALSE(mailbox_.pause(2, 0));
  host_.on_planned(3, {});
  EXPECT_TRUE(mailbox_.wants_switch(1));
}

// It would fail again, in the place of one that can train.
TEST_F(WorkerHostTest, WhoHasFailedEndsInsteadOfComingBackAsANewWorker) {
  int ends = 0;
  host_.on_new_identity(1);
  host_.has_failed([&ends] { ++ends; });
  EXPECT_EQ(ends, 0);
  host_.on_new_identity(2);
  EXPECT_EQ(ends, 1);
}

TEST_F(WorkerHostTest, TheEndClosesEverythingThereMayEverBe) {
  host_.on_end(Status::ok(), 0);
  EXPECT_EQ(context_.closed.back(), ~Generation{0});
  EXPECT_FALSE(gate_.open(7, {}, {}));
  EXPECT_FALSE(mailbox_.next().has_value());
}

}  // namespace
}  // namespace lockstep
