// The training thread with an engine that only counts.
#include "worker/session/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "comm/collectives/loopback/loopback.h"
#include "tests/unit/checkpoint/test_state.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Its state is one number: the steps applied.
class CountingEngine final : public Engine {
 public:
  GradientBuffer& gradient_buffer() override { return *buffer_; }
  std::vector<uint64_t> tensor_bounds() const override { return {0, 16}; }
  std::vector<std::string> fingerprint() const override { return {}; }
  std::vector<StateTensor> state() override {
    return {{StateSection::kParameter,
             "count",
             DType::kI64,
             {},
             reinterpret_cast<std::byte*>(&count_),
             sizeof count_}};
  }
  void state_replaced(Step applied_steps) override { applied_ = applied_steps; }
  Step applied_steps() const override { return applied_; }
  Status start_afresh() override {
    count_ = 0;
    applied_ = 0;
    return Status::ok();
  }
  Status begin_generation(const GenerationView& view, ApplyGate gate) override {
    collective_ = view.collective;
    gate_ = std::move(gate);
    return Status::ok();
  }
  // As the lane does that a failed step has left behind: uses the Collective a last time.
  void end_generation() override {
    if (collective_ == nullptr) return;
    ended_with.push_back(collective_->barrier({1, applied_, Phase::kTrain, 0, 0}).code());
    collective_ = nullptr;
  }
  Result<StepOutcome> step() override {
    if (applied_ == fail_at) return Status(Code::kBadData, "cannot read the sample");
    if (on_step) on_step(applied_);
    if (!gate_.try_enter()) return Status(Code::kAborted, "closed");
    StepOutcome outcome;
    outcome.record.set_step(applied_);
    outcome.all_want_stop = stop_;
    count_ = static_cast<int64_t>(++applied_);
    gate_.leave();
    return outcome;
  }
  Result<wire::EvalReport> evaluate() override {
    wire::EvalReport report;
    report.set_step(applied_);
    return report;
  }
  void request_stop() override { stop_ = true; }
  Progress progress() const override { return {}; }

  std::function<void(Step)> on_step;
  Step fail_at = ~Step{0};
  int64_t count_ = 0;
  std::vector<Code> ended_with;  // what the Collective said at the end of each generation

 private:
  std::unique_ptr<GradientBuffer> buffer_ = make_plain_buffer({16, 16, 32}, 1);
  Collective* collective_ = nullptr;
  ApplyGate gate_;
  Step applied_ = 0;
  std::atomic<bool> stop_{false};
};

class LonelyContext final : public HostContext {
 public:
  HostAddress address() const override { return {}; }
  Result<std::unique_ptr<GradientBuffer>> make_buffer(const BufferLayout& layout,
                                                      uint32_t regions) override {
    return make_plain_buffer(layout, regions);
  }
  Result<std::unique_ptr<Collective>> connect(Generation generation, uint32_t, MemberId,
                                              const std::vector<PeerAddress>&, int) override {
    if (!fails.is_ok()) return std::exchange(fails, Status::ok());
    auto collective = std::move(make_loopback(generation, {buffer_.get()})[0]);
    newest_ = collective.get();
    return collective;
  }
  int64_t unreachable_rank() const override { return 0; }
  void close(Generation) noexcept override {
    if (newest_ != nullptr) newest_->abort();
  }

  Status fails;  // the next connect()

 private:
  Collective* newest_ = nullptr;
  std::unique_ptr<GradientBuffer> buffer_ = make_plain_buffer({16, 16, 32}, 1);
};

// Writes down what happened, and acknowledges checkpoints at once.
class Port final : public RunnerPort {
 public:
  explicit Port(Mailbox& mailbox) : mailbox_(mailbox) {}
  Status add_record(Generation, wire::StepRecord record) override {
    note("step " + std::to_string(record.step()));
    return Status::ok();
  }
  void report_eval(Generation, wire::EvalReport report) override {
    note("eval " + std::to_string(report.step()));
  }
  void report_checkpoint(Generation, wire::CheckpointReport report) override {
    {
      std::lock_guard lock(mutex_);
      checkpoints.push_back(report);
    }
    if (instead_of_ack) return instead_of_ack();
    if (report.error().empty()) mailbox_.acknowledge(report.name());
  }
  void report_check(Generation, wire::CheckReport report) override {
    note("check after " + std::to_string(report.applied()));
  }
  void suspect(Generation, MemberId member, std::string) override {
    note("suspect " + std::to_string(member));
    mailbox_.end();
  }
  void switched(Generation generation, ResumePoint since) override {
    note("switched " + std::to_string(generation) + " at " + std::to_string(since.step));
  }
  void leave(Generation, wire::Leave::Reason reason, Status status,
             std::optional<ResumePoint> applied) override {
    note("leave " + wire::Leave::Reason_Name(reason) + " " +
         std::to_string(applied ? applied->step : 0));
    last = status;
    mailbox_.end();
  }
  Result<RecordQueue::Unacknowledged> unacknowledged() const override {
    return RecordQueue::Unacknowledged{};
  }

  std::vector<std::string> events;
  std::vector<wire::CheckpointReport> checkpoints;
  Status last;
  std::function<void()> instead_of_ack;

 private:
  void note(std::string what) {
    std::lock_guard lock(mutex_);
    events.push_back(std::move(what));
  }
  std::mutex mutex_;
  Mailbox& mailbox_;
};

class RunnerTest : public ::testing::Test {
 protected:
  RunnerTest() {
    (void)wire::Leave::descriptor()->full_name();  // before there are threads, as in RunnerWorld
    (void)wire::JobSpec::descriptor()->full_name();
    job_.mutable_train()->set_global_batch(10);
    job_.mutable_train()->set_slots(1);
    job_.mutable_data()->mutable_eval()->set_path("somewhere");
    job_.mutable_checkpoint()->set_keep(2);
    facts_.set_train_samples(25);  // 3 steps an epoch
  }

  StartOrder order(Generation generation, ResumePoint at, Step total) {
    StartOrder order{generation, 4, "run", {}};
    wire::MemberInfo* member = order.start.add_members();
    member->set_member(4);
    member->mutable_slots()->set_end(1);
    order.start.set_writer(4);
    order.start.set_total_steps(total);
    order.start.mutable_resume()->set_step(at.step);
    order.start.mutable_resume()->set_phase(static_cast<uint32_t>(at.phase));
    if (at.step == 0)
      order.start.mutable_source()->set_fresh(true);
    else
      order.start.mutable_source()->add_members(4);
    return order;
  }

  void run(StartOrder first) {
    Runner runner({job_, facts_, temporary_.path(), {}, 1'000},
                  {engine_, context_, gate_, mailbox_, port_, *files_, probe_, nullptr, *logger_,
                   [this](const Status& status) { failure_ = status; }});
    mailbox_.put(std::move(first));
    runner.run();
  }

  std::vector<std::string> checkpoint_names() {
    return testing::names_in(temporary_.path() + "/checkpoints");
  }

  testing::TemporaryDirectory temporary_;
  wire::JobSpec job_;
  wire::DataFacts facts_;
  CountingEngine engine_;
  LonelyContext context_;
  ApplyGate gate_;
  Mailbox mailbox_;
  Port port_{mailbox_};
  RunnerProbe probe_;
  std::unique_ptr<FileOps> files_ = posix_file_ops();
  std::unique_ptr<Logger> logger_ = null_logger();
  Status failure_;
};

TEST_F(RunnerTest, ARunStepsEvaluatesEveryEpochWritesItsLastCheckpointAndLeaves) {
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "step 1", "step 2", "eval 3", "step 3", "step 4",
                                        "eval 5", "leave FINISHED 5"));
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000005-g1-m4"));
  ASSERT_EQ(port_.checkpoints.size(), 1u);
  EXPECT_TRUE(port_.checkpoints[0].final());
  EXPECT_EQ(port_.checkpoints[0].weights_sha256().size(), 64u);
}

TEST_F(RunnerTest, CheckpointsOnTheWayAreAllThereAndHoldTheirOwnStep) {
  job_.mutable_checkpoint()->set_every_steps(2);
  run(order(1, {0, Phase::kTrain}, 7));
  ASSERT_THAT(checkpoint_names(), ElementsAre("step-0000000002-g1-m4", "step-0000000004-g1-m4",
                                              "step-0000000006-g1-m4", "step-0000000007-g1-m4"));
  for (const Step step : {2, 4, 6, 7}) {
    int64_t count = 0;
    const std::vector<StateTensor> state = {{StateSection::kParameter,
                                             "count",
                                             DType::kI64,
                                             {},
                                             reinterpret_cast<std::byte*>(&count),
                                             8}};
    const std::string path = temporary_.path() + "/checkpoints/" + checkpoint_name({step, 1, 4});
    ASSERT_TRUE(load_checkpoint(path, state).is_ok());
    EXPECT_EQ(count, static_cast<int64_t>(step));
  }
}

TEST_F(RunnerTest, AnAgreedStopLeavesACheckpointOfItsStepAndNoEvaluation) {
  engine_.on_step = [this](Step step) {
    if (step == 2) engine_.request_stop();
  };
  run(order(1, {0, Phase::kTrain}, 100));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "step 1", "step 2", "leave STOPPED 3"));
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000003-g1-m4"));
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000003-g1-m4");
  EXPECT_EQ(info->manifest.resume, (ResumePoint{3, Phase::kEval}));  // still to be done
}

TEST_F(RunnerTest, AResumeLoadsTheCheckpointAndDoesTheEvaluationThatWasMissed) {
  engine_.count_ = 3;
  Manifest manifest = testing::manifest_of(3);
  auto written = write_checkpoint(*files_, temporary_.path() + "/c", engine_.state(), manifest);
  ASSERT_TRUE(written.is_ok());
  engine_.count_ = 0;
  StartOrder resume = order(2, {3, Phase::kEval}, 5);
  resume.start.mutable_source()->set_checkpoint_path(written->path);
  run(resume);
  EXPECT_THAT(port_.events,
              ElementsAre("eval 3", "step 3", "step 4", "eval 5", "leave FINISHED 5"));
  EXPECT_EQ(engine_.count_, 5);
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000005-g2-m4");
  EXPECT_EQ(info->manifest.lineage.resumed_from, written->name);
}

TEST_F(RunnerTest, AfterACloseTheNextStartGoesOnWhereTheGateSays) {
  std::optional<ResumePoint> promised;
  engine_.on_step = [&](Step step) {
    if (step != 2 || promised) return;
    gate_.close(1, [&](const Standing& standing) { promised = standing.applied; });
    mailbox_.put(order(2, *promised, 4));
  };
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_EQ(promised, (ResumePoint{2, Phase::kTrain}));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "step 1", "step 2", "eval 3", "step 3", "eval 4",
                                        "leave FINISHED 4"));
}

TEST_F(RunnerTest, AFailureIsReportedWithItsCode) {
  engine_.fail_at = 1;
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "leave FAILED 1"));
  EXPECT_EQ(port_.last.code(), Code::kBadData);
  EXPECT_EQ(failure_.code(), Code::kBadData);
}

TEST_F(RunnerTest, AFailedGenerationIsAbortedBeforeTheEngineLetsGoOfIt) {
  engine_.fail_at = 1;
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(engine_.ended_with, ElementsAre(Code::kAborted));
}

TEST_F(RunnerTest, AFinishedGenerationIsLetGoWithoutAnAbort) {
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(engine_.ended_with, ElementsAre(Code::kOk));
}

// An engine that is resumed behind its last step has no record to take the epoch from.
TEST_F(RunnerTest, TheManifestKnowsItsEpochWithoutAStepInThisGeneration) {
  engine_.state_replaced(6);
  run(order(2, {6, Phase::kCheckpoint}, 6));
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000006-g2-m4");
  ASSERT_TRUE(info.is_ok());
  EXPECT_EQ(info->manifest.epoch, 1u);  // steps 3, 4 and 5
}

TEST_F(RunnerTest, AFinalCheckpointThatCannotBeWrittenIsAFailureOfTheRun) {
  std::ofstream(temporary_.path() + "/checkpoints") << "a file in the way";
  run(order(1, {0, Phase::kTrain}, 1));
  EXPECT_EQ(port_.events.back(), "leave FAILED 1");
  ASSERT_EQ(port_.checkpoints.size(), 1u);
  EXPECT_THAT(port_.checkpoints[0].error(), HasSubstr("checkpoints"));
}

TEST_F(RunnerTest, AFinishedRunThatIsStartedAgainHasNothingToDo) {
  run(order(1, {0, Phase::kEnd}, 0));
  EXPECT_THAT(port_.events, ElementsAre("leave FINISHED 0"));
  EXPECT_THAT(port_.checkpoints, IsEmpty());
}

TEST_F(RunnerTest, TheWriterDoesNotLeaveBeforeItsCheckpointIsInTheJournal) {
  port_.instead_of_ack = [this] {
    mailbox_.close(1);
    gate_.close(1, [](const Standing&) {});
    mailbox_.end();
  };
  run(order(1, {0, Phase::kTrain}, 1));
  ASSERT_EQ(port_.checkpoints.size(), 1u);
  EXPECT_THAT(port_.events, ElementsAre("step 0", "eval 1"));
}

TEST_F(RunnerTest, APeerThatCannotBeReachedIsSuspectedAndNoFailureOfThisWorker) {
  context_.fails = Status(Code::kUnavailable, "nobody there");
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(port_.events, ElementsAre("suspect 4"));
  EXPECT_TRUE(failure_.is_ok());
}

TEST_F(RunnerTest, AMemberThatIsNotAtTheResumePointFailsAndSaysWhy) {
  engine_.state_replaced(7);
  run(order(2, {6, Phase::kTrain}, 9));
  EXPECT_THAT(port_.events, ElementsAre("leave FAILED 0"));
  EXPECT_EQ(port_.last.code(), Code::kInternal);
  EXPECT_THAT(port_.last.message(), HasSubstr("state is of step 7"));
  EXPECT_THAT(port_.last.message(), HasSubstr("resumes at step 6"));
}

TEST_F(RunnerTest, APlanThatWasClosedIsNotVotedFor) {
  StartOrder next = order(2, {1, Phase::kTrain}, 4);
  next.planned = true;
  mailbox_.plan(next);
  EXPECT_TRUE(mailbox_.wants_switch(1));
  EXPECT_FALSE(mailbox_.wants_switch(2));
  mailbox_.close(2);
  EXPECT_FALSE(mailbox_.wants_switch(1));
  mailbox_.plan(next);
  EXPECT_FALSE(mailbox_.wants_switch(1));
}

// It is in no generation any more, whatever its training thread still does in an old one.
TEST_F(RunnerTest, APlanThatLetsThisWorkerJoinIsTakenWhenIdleAndNeverVotedFor) {
  StartOrder next = order(2, {1, Phase::kTrain}, 4);
  next.planned = true;
  next.start.mutable_source()->set_members(0, 9);
  mailbox_.plan(next);
  EXPECT_FALSE(mailbox_.wants_switch(1));
  const auto taken = mailbox_.next();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->generation, 2u);
}

}  // namespace
}  // namespace lockstep
