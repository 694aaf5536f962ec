// A session over the in-memory network against a scripted coordinator.
#include "worker/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/rpc/memory_transport.h"
#include "comm/rpc/server.h"
#include "tests/unit/checkpoint/test_state.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

class Host final : public SessionHost {
 public:
  Status on_registered(const wire::Registered&) override { return fits; }
  void on_close(Generation through, Closed closed) override {
    closed_through.push_back(through);
    if (hold_close)
      held = std::move(closed);
    else
      closed(where);
  }
  void on_start(Generation generation, const wire::Start&) override {
    starts.push_back(generation);
  }
  void on_planned(Generation generation, const wire::Start&) override {
    plans.push_back(generation);
  }
  void on_new_identity(Generation through) override {
    forgotten_through.push_back(through);
    where = {};
  }
  void on_stop(const std::string&) override { ++stops; }
  void on_hang() override { ++hangs; }
  void on_checkpoint_ack(const wire::CheckpointAck& ack) override { acks.push_back(ack.name()); }
  void on_end(const Status& why, int code) override {
    end = why;
    exit_codes.push_back(code);
  }
  Heartbeat heartbeat() const override { return {7, Phase::kEval, 2}; }
  Standing standing() const override { return where; }

  Status fits;
  bool hold_close = false;
  Closed held;
  Standing where;
  std::vector<Generation> closed_through;
  std::vector<Generation> plans;
  std::vector<Generation> forgotten_through;
  std::vector<Generation> starts;
  std::vector<std::string> acks;
  std::vector<int> exit_codes;
  Status end;
  int stops = 0;
  int hangs = 0;
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    start_coordinator();
    Session::Options options;
    options.rpc.address = [this]() -> Result<rpc::Address> { return address_; };
    options.rpc.token = kToken;
    options.spill_path = temporary_.path() + "/spill";
    session_ = std::make_unique<Session>(*worker_side_, options, host_, *logger_);
    wire::Register hello;
    hello.set_node("n0");
    session_->begin(hello);
  }

  void start_coordinator() {
    server_.reset();
    auto server = rpc::RpcServer::start(
        *coordinator_side_, {"127.0.0.1", 0}, kToken, *logger_,
        {.on_peer = [this](rpc::PeerId id, const std::string&) { peer_ = id; },
         .on_message = [this](rpc::PeerId, wire::Envelope&& m) { got_.push_back(std::move(m)); },
         .on_lost = [](rpc::PeerId, const Status&) {}});
    ASSERT_TRUE(server.is_ok()) << server.status().message();
    server_ = std::move(server).value();
    address_ = server_->address();
  }

  void say(wire::Envelope envelope, Generation generation, Term term = 1) {
    envelope.set_term(term);
    envelope.set_generation(generation);
    server_->send(peer_, envelope);
    loop_.run_for(5);
  }
  void take_in(MemberId member = 4, Term term = 1) {
    loop_.run_for(300);
    wire::Envelope envelope;
    envelope.mutable_registered()->set_member(member);
    say(envelope, 0, term);
  }
  void prepare(Generation generation, Term term = 1) {
    wire::Envelope envelope;
    envelope.mutable_prepare();
    say(envelope, generation, term);
  }
  void start(Generation generation, Term term = 1) {
    wire::Envelope envelope;
    envelope.mutable_start()->set_total_steps(10);
    say(envelope, generation, term);
  }
  void acknowledge(uint64_t batch) {
    wire::Envelope envelope;
    envelope.mutable_records_ack()->set_batch(batch);
    say(envelope, 1);
  }
  void goodbye(uint32_t code) {
    wire::Envelope envelope;
    envelope.mutable_goodbye()->set_exit_code(code);
    say(envelope, 1);
  }
  void started() {
    take_in();
    prepare(1);
    start(1);
  }
  void plan(Generation generation, Term term = 1) {
    wire::Envelope envelope;
    envelope.mutable_planned()->mutable_next()->set_total_steps(10);
    say(envelope, generation, term);
  }
  // What the training thread does at an agreed switch: the gate first.
  void switch_to(Generation generation, ResumePoint since) {
    host_.where = {generation, since, since};
    session_->switched(generation, since);
    loop_.run_for(5);
  }
  void applied_step(Step step, Generation generation = 1) {
    wire::StepRecord record;
    record.set_step(step);
    ASSERT_TRUE(session_->add_record(generation, record).is_ok());
  }
  void reconnect(MemberId member = 4) {
    network_.cut("worker", "coordinator");
    loop_.run_for(3'000);
    take_in(member);
  }

  // What has come of one kind since the last call.
  std::vector<wire::Envelope> received(wire::Envelope::BodyCase kind) {
    std::vector<wire::Envelope> found;
    for (const wire::Envelope& m : got_)
      if (m.body_case() == kind) found.push_back(m);
    std::erase_if(got_, [kind](const auto& m) { return m.body_case() == kind; });
    return found;
  }
  std::vector<uint64_t> received_batches() {
    std::vector<uint64_t> numbers;
    for (const auto& m : received(wire::Envelope::kStepRecords))
      numbers.push_back(m.step_records().batch());
    return numbers;
  }

  testing::TemporaryDirectory temporary_;
  rpc::SimLoop loop_;
  rpc::MemoryNetwork network_{loop_};
  std::unique_ptr<rpc::MemoryTransport> worker_side_ = network_.transport("worker");
  std::unique_ptr<rpc::MemoryTransport> coordinator_side_ = network_.transport("coordinator");
  std::unique_ptr<Logger> logger_ = null_logger();
  Host host_;
  rpc::Address address_;
  std::unique_ptr<rpc::RpcServer> server_;
  rpc::PeerId peer_ = 0;
  std::vector<wire::Envelope> got_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, RegistersPromisesAndStarts) {
  take_in();
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_EQ(registers.size(), 1u);
  EXPECT_EQ(registers[0].register_().member(), 0u);
  EXPECT_FALSE(registers[0].register_().has_state());
  EXPECT_EQ(session_->state(), Session::State::kMember);
  prepare(1);
  const auto promises = received(wire::Envelope::kPromise);
  ASSERT_EQ(promises.size(), 1u);
  EXPECT_EQ(promises[0].promise().generation(), 1u);
  EXPECT_FALSE(promises[0].promise().has_state());
  start(1);
  EXPECT_THAT(host_.starts, ElementsAre(1));
  EXPECT_EQ(session_->state(), Session::State::kStarted);
}

TEST_F(SessionTest, APromiseIsNeverSentBeforeTheRunningApplyEnded) {
  started();
  host_.hold_close = true;
  prepare(2);
  EXPECT_THAT(host_.closed_through, ElementsAre(0, 1));
  loop_.run_for(5'000);
  EXPECT_EQ(received(wire::Envelope::kPromise).size(), 1u);  // that of generation 1
  host_.held({1, {5, Phase::kTrain}, ResumePoint{8, Phase::kTrain}});
  loop_.run_for(5);
  const auto promises = received(wire::Envelope::kPromise);
  ASSERT_EQ(promises.size(), 1u);
  EXPECT_EQ(promises[0].promise().generation(), 2u);
  EXPECT_EQ(promises[0].promise().applied().step(), 8u);
  EXPECT_EQ(promises[0].promise().lived(), 1u);
  EXPECT_EQ(promises[0].promise().since().step(), 5u);
}

TEST_F(SessionTest, WhenANewerOneIsPreparedMeanwhileOnlyThatIsPromised) {
  started();
  (void)received(wire::Envelope::kPromise);
  host_.hold_close = true;
  prepare(2);
  auto first = std::move(host_.held);
  prepare(3);
  first({});
  host_.held({});
  loop_.run_for(5);
  const auto promises = received(wire::Envelope::kPromise);
  ASSERT_EQ(promises.size(), 1u);
  EXPECT_EQ(promises[0].promise().generation(), 3u);
}

TEST_F(SessionTest, WhatIsOlderIsDropped) {
  take_in(4, /*term=*/5);
  prepare(3, 5);
  start(3, 5);
  prepare(3, 5);
  prepare(2, 5);
  start(2, 5);
  prepare(9, 4);  // an older coordinator
  EXPECT_THAT(host_.closed_through, ElementsAre(2));
  EXPECT_THAT(host_.starts, ElementsAre(3));
  EXPECT_EQ(session_->term(), 5u);
}

TEST_F(SessionTest, AStartThatWasNotPromisedIsDropped) {
  take_in();
  start(1);
  EXPECT_THAT(host_.starts, IsEmpty());
  host_.hold_close = true;
  prepare(1);
  start(1);  // before the answer
  EXPECT_THAT(host_.starts, IsEmpty());
}

TEST_F(SessionTest, TheSameStartAgainChangesNothing) {
  started();
  start(1);
  EXPECT_THAT(host_.starts, ElementsAre(1));
}

TEST_F(SessionTest, APrepareAgainIsAnsweredAgain) {
  take_in();
  prepare(1);
  prepare(1);
  EXPECT_EQ(received(wire::Envelope::kPromise).size(), 2u);
  EXPECT_THAT(host_.closed_through, ElementsAre(0));
}

TEST_F(SessionTest, AfterALostConnectionItRegistersWithWhatItKnows) {
  started();
  (void)received(wire::Envelope::kRegister);
  host_.where = {1, {3, Phase::kTrain}, ResumePoint{8, Phase::kEval}};
  EXPECT_EQ(network_.cut("worker", "coordinator"), 1u);
  loop_.run_for(3'000);
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_EQ(registers.size(), 1u);
  EXPECT_EQ(registers[0].register_().member(), 4u);
  EXPECT_EQ(registers[0].register_().generation(), 1u);
  EXPECT_EQ(registers[0].register_().since().step(), 3u);
  EXPECT_TRUE(registers[0].register_().has_state());
  EXPECT_EQ(registers[0].register_().applied().step(), 8u);
  EXPECT_EQ(registers[0].register_().applied().phase(), static_cast<uint32_t>(Phase::kEval));
  EXPECT_EQ(session_->state(), Session::State::kStarted);
}

TEST_F(SessionTest, RecordsAreSentAgainAfterALossUntilTheyAreAcknowledged) {
  started();
  applied_step(0);
  loop_.run_for(250);
  applied_step(1);
  loop_.run_for(250);
  EXPECT_THAT(received_batches(), ElementsAre(1, 2));
  acknowledge(1);
  network_.cut("worker", "coordinator");
  applied_step(2);
  loop_.run_for(3'000);
  EXPECT_THAT(received_batches(), IsEmpty());  // not before it is taken in again
  take_in();
  EXPECT_THAT(received_batches(), ElementsAre(2, 3));
  acknowledge(3);
  loop_.run_for(3'000);
  EXPECT_THAT(received_batches(), IsEmpty());
}

TEST_F(SessionTest, ACheckIsReportedAgainAfterALossUntilTheNextOneIsThere) {
  started();
  const auto check = [this](Step applied) {
    wire::CheckReport report;
    report.set_applied(applied);
    session_->report_check(1, report);
    loop_.run_for(5);
  };
  const auto reported = [this] {
    std::vector<Step> steps;
    for (const auto& m : received(wire::Envelope::kCheck)) steps.push_back(m.check().applied());
    return steps;
  };
  check(100);
  check(200);
  EXPECT_THAT(reported(), ElementsAre(100, 200));
  network_.cut("worker", "coordinator");
  loop_.run_for(1'000);
  got_.clear();
  check(300);
  take_in();
  EXPECT_THAT(reported(), ElementsAre(200, 300));
}

TEST_F(SessionTest, NobodyLeavesBeforeItsRecordsAreAcknowledged) {
  started();
  applied_step(0);
  session_->leave(1, wire::Leave::FINISHED, Status::ok(), ResumePoint{1, Phase::kEnd});
  loop_.run_for(500);
  EXPECT_THAT(received_batches(), ElementsAre(1));
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
  acknowledge(1);
  const auto leaves = received(wire::Envelope::kLeave);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].leave().applied().step(), 1u);
  EXPECT_THAT(host_.exit_codes, IsEmpty());
  goodbye(0);
  EXPECT_THAT(host_.exit_codes, ElementsAre(0));
}

TEST_F(SessionTest, AFailureIsToldAtOnce) {
  started();
  applied_step(0);
  session_->leave(1, wire::Leave::FAILED, Status(Code::kBadData, "bad file"), std::nullopt);
  loop_.run_for(50);
  const auto leaves = received(wire::Envelope::kLeave);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].leave().code(), static_cast<uint32_t>(Code::kBadData));
}

TEST_F(SessionTest, ACheckpointIsReportedAgainUntilItIsInTheJournal) {
  started();
  wire::CheckpointReport report;
  report.set_name("step-0000000010-g1-m4");
  session_->report_checkpoint(1, report);
  loop_.run_for(50);
  EXPECT_EQ(received(wire::Envelope::kCheckpoint).size(), 1u);
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  take_in();
  EXPECT_EQ(received(wire::Envelope::kCheckpoint).size(), 1u);
  wire::Envelope ack;
  ack.mutable_checkpoint_ack()->set_name(report.name());
  say(ack, 1);
  EXPECT_THAT(host_.acks, ElementsAre(report.name()));
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  take_in();
  EXPECT_THAT(received(wire::Envelope::kCheckpoint), IsEmpty());
}

TEST_F(SessionTest, WhatAnOlderGenerationDidIsReportedButNobodyLeavesWithIt) {
  started();
  prepare(2);
  session_->report_eval(1, {});
  session_->report_checkpoint(1, {});
  session_->leave(1, wire::Leave::FINISHED, Status::ok(), ResumePoint{10, Phase::kEnd});
  loop_.run_for(500);
  const auto evals = received(wire::Envelope::kEval);
  ASSERT_EQ(evals.size(), 1u);
  EXPECT_EQ(evals[0].generation(), 1u);
  EXPECT_EQ(received(wire::Envelope::kCheckpoint).size(), 1u);
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
}

TEST_F(SessionTest, APreparedGenerationMakesALeaveVoidThatWasNotAnsweredYet) {
  started();
  session_->leave(1, wire::Leave::FINISHED, Status::ok(), ResumePoint{10, Phase::kEnd});
  loop_.run_for(50);
  EXPECT_EQ(received(wire::Envelope::kLeave).size(), 1u);
  prepare(2);
  start(2);
  EXPECT_EQ(session_->state(), Session::State::kStarted);
  reconnect();
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
}

TEST_F(SessionTest, HeartbeatsCarryWhereTheWorkerIs) {
  started();
  loop_.run_for(3'500);
  const auto beats = received(wire::Envelope::kHeartbeat);
  ASSERT_GE(beats.size(), 3u);
  EXPECT_EQ(beats[0].heartbeat().step(), 7u);
  EXPECT_EQ(beats[0].heartbeat().bucket(), 2u);
}

TEST_F(SessionTest, GoodbyeEndsWithItsCodeAndNothingFollows) {
  started();
  goodbye(75);
  EXPECT_THAT(host_.exit_codes, ElementsAre(75));
  EXPECT_EQ(host_.end.code(), Code::kCheckpointed);
  start(2);
  loop_.run_for(5'000);
  EXPECT_THAT(host_.exit_codes, ElementsAre(75));
  EXPECT_EQ(session_->state(), Session::State::kEnded);
}

TEST_F(SessionTest, AWorkerThatDoesNotFitTheRunSaysWhyAndEnds) {
  host_.fits = Status(Code::kUsage, "another job");
  take_in();
  EXPECT_THAT(host_.exit_codes, ElementsAre(64));
  const auto leaves = received(wire::Envelope::kLeave);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].leave().message(), "another job");
}

TEST_F(SessionTest, AWorkerThatIsNeverTakenInGivesUp) {
  loop_.run_for(130'000);
  EXPECT_THAT(host_.exit_codes, ElementsAre(70));
  EXPECT_EQ(host_.end.code(), Code::kUnavailable);
}

TEST_F(SessionTest, AStopRequestReachesTheWorker) {
  started();
  wire::Envelope envelope;
  envelope.mutable_stop()->set_reason("signal");
  say(envelope, 1);
  EXPECT_EQ(host_.stops, 1);
}

// ---- planned changes

TEST_F(SessionTest, APlannedChangeReachesAMemberOnceHoweverOftenItIsSaid) {
  started();
  plan(2);
  plan(2);
  EXPECT_THAT(host_.plans, ElementsAre(2));
  EXPECT_EQ(session_->state(), Session::State::kStarted);
}

TEST_F(SessionTest, APlannedChangeReachesAWorkerThatIsInNoGenerationYet) {
  take_in();
  plan(2);
  EXPECT_THAT(host_.plans, ElementsAre(2));
  switch_to(2, {7, Phase::kTrain});
  EXPECT_EQ(session_->state(), Session::State::kStarted);
  EXPECT_EQ(session_->generation(), 2u);
}

TEST_F(SessionTest, APlannedChangeThatIsNotNewerThanWhatIsPromisedIsDropped) {
  take_in();
  prepare(3);
  start(3);
  plan(3);
  plan(2);
  prepare(5);
  plan(4);
  plan(6);
  host_.hold_close = true;
  prepare(7);
  plan(8);
  EXPECT_THAT(host_.plans, ElementsAre(6));
}

TEST_F(SessionTest, AnOlderPlanDoesNotComeBackOnceANewerOneIsKnown) {
  started();
  plan(3);
  plan(2);
  EXPECT_THAT(host_.plans, ElementsAre(3));
}

TEST_F(SessionTest, AnAgreedSwitchIsToldAtOnceAndBehindTheRecordsOfTheGenerationBefore) {
  started();
  applied_step(0);
  plan(2);
  got_.clear();
  switch_to(2, {1, Phase::kEval});
  ASSERT_EQ(got_.size(), 2u);
  EXPECT_EQ(got_[0].body_case(), wire::Envelope::kStepRecords);
  EXPECT_EQ(got_[0].generation(), 1u);
  ASSERT_EQ(got_[1].body_case(), wire::Envelope::kSwitched);
  EXPECT_EQ(got_[1].generation(), 2u);
  EXPECT_EQ(got_[1].switched().since().step(), 1u);
  EXPECT_EQ(got_[1].switched().since().phase(), static_cast<uint32_t>(Phase::kEval));
  EXPECT_EQ(session_->generation(), 2u);
  plan(2);  // a coordinator that has not heard of it yet
  start(2);
  EXPECT_THAT(host_.plans, ElementsAre(2));
  EXPECT_THAT(host_.starts, ElementsAre(1));
}

TEST_F(SessionTest, ASwitchWithoutAConnectionIsToldByTheNextRegister) {
  started();
  plan(2);
  (void)received(wire::Envelope::kRegister);
  network_.cut("worker", "coordinator");
  host_.where = {2, {1, Phase::kTrain}, ResumePoint{1, Phase::kTrain}};
  session_->switched(2, {1, Phase::kTrain});
  applied_step(1, 2);
  loop_.run_for(3'000);
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_EQ(registers.size(), 1u);
  EXPECT_EQ(registers[0].register_().generation(), 2u);
  EXPECT_EQ(registers[0].register_().since().step(), 1u);
  take_in();
  EXPECT_THAT(received(wire::Envelope::kSwitched), IsEmpty());
  EXPECT_THAT(received_batches(), ElementsAre(1));
}

TEST_F(SessionTest, ASwitchBetweenRegisterAndItsAnswerIsToldAfterTheAnswer) {
  started();
  plan(2);
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  const auto registers = received(wire::Envelope::kRegister);
  EXPECT_EQ(registers.back().register_().generation(), 0u);
  switch_to(2, {1, Phase::kTrain});
  EXPECT_THAT(received(wire::Envelope::kSwitched), IsEmpty());
  take_in();
  EXPECT_EQ(received(wire::Envelope::kSwitched).size(), 1u);
}

TEST_F(SessionTest, ASwitchIsToldByThePromiseIfANewerGenerationWasPreparedMeanwhile) {
  started();
  plan(2);
  (void)received(wire::Envelope::kPromise);
  host_.hold_close = true;
  prepare(3);
  switch_to(2, {1, Phase::kTrain});
  EXPECT_EQ(session_->state(), Session::State::kClosing);
  EXPECT_THAT(received(wire::Envelope::kSwitched), IsEmpty());
  host_.held(host_.where);
  loop_.run_for(5);
  const auto promises = received(wire::Envelope::kPromise);
  ASSERT_EQ(promises.size(), 1u);
  EXPECT_EQ(promises[0].promise().generation(), 3u);
  EXPECT_EQ(promises[0].promise().lived(), 2u);
  start(3);
  EXPECT_THAT(host_.starts, ElementsAre(1, 3));
}

TEST_F(SessionTest, AfterAPrepareTheSameNumberMayNotBePlannedAgain) {
  started();
  plan(2);
  prepare(3);
  start(3);
  plan(2);
  plan(4);
  EXPECT_THAT(host_.plans, ElementsAre(2, 4));
  EXPECT_THAT(host_.closed_through, ElementsAre(0, 2));  // the planned one with the present one
}

TEST_F(SessionTest, WhoIsLeftOutLeavesOnceItsRecordsAreAcknowledged) {
  started();
  plan(2);
  applied_step(0);
  session_->leave(1, wire::Leave::DRAINED, Status::ok(), ResumePoint{1, Phase::kTrain});
  loop_.run_for(500);
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
  acknowledge(1);
  const auto leaves = received(wire::Envelope::kLeave);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].leave().reason(), wire::Leave::DRAINED);
  EXPECT_EQ(leaves[0].generation(), 1u);
}

TEST_F(SessionTest, ADrainRequestIsSentAgainAfterEveryReconnect) {
  started();
  session_->drain("SIGTERM");
  session_->drain("SIGTERM");
  loop_.run_for(5);
  auto requests = received(wire::Envelope::kDrain);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].drain().reason(), "SIGTERM");
  reconnect();
  EXPECT_EQ(received(wire::Envelope::kDrain).size(), 1u);
}

TEST_F(SessionTest, ADrainRequestThatCameBeforeAnythingElseWaitsForTheRegistration) {
  session_->drain("SIGTERM");
  loop_.run_for(1'000);
  EXPECT_THAT(received(wire::Envelope::kDrain), IsEmpty());
  take_in();
  EXPECT_EQ(received(wire::Envelope::kDrain).size(), 1u);
}

// The coordinator that heard it may be gone before it did anything about it.
TEST_F(SessionTest, ASuspicionIsToldAgainUntilItsGenerationIsOver) {
  started();
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  session_->suspect(1, 7, "gone");
  loop_.run_for(50);
  EXPECT_THAT(received(wire::Envelope::kPeerSuspect), IsEmpty());
  take_in();
  const auto suspicions = received(wire::Envelope::kPeerSuspect);
  ASSERT_EQ(suspicions.size(), 1u);
  EXPECT_EQ(suspicions[0].peer_suspect().member(), 7u);
  EXPECT_EQ(suspicions[0].generation(), 1u);
  reconnect();
  EXPECT_EQ(received(wire::Envelope::kPeerSuspect).size(), 1u);
  prepare(2);
  session_->suspect(1, 7, "gone");
  reconnect();
  EXPECT_THAT(received(wire::Envelope::kPeerSuspect), IsEmpty());
}

// ---- a new identity

TEST_F(SessionTest, ANewIdentityForgetsEverythingOfTheOldOne) {
  started();
  host_.where = {1, {0, Phase::kTrain}, ResumePoint{2, Phase::kTrain}};
  applied_step(0);
  session_->report_eval(1, {});
  loop_.run_for(250);
  plan(2);
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  got_.clear();
  take_in(9);
  EXPECT_THAT(host_.forgotten_through, ElementsAre(2));  // with the change that was planned
  EXPECT_EQ(session_->member(), 9u);
  EXPECT_EQ(session_->generation(), 0u);
  EXPECT_EQ(session_->state(), Session::State::kMember);

  // What the training thread still says of the old life.
  applied_step(1);
  applied_step(1, 2);
  session_->report_eval(1, {});
  session_->switched(2, {1, Phase::kTrain});
  session_->suspect(2, 3, "gone");
  session_->leave(2, wire::Leave::FAILED, Status(Code::kInternal, "x"), std::nullopt);
  loop_.run_for(500);
  for (const auto kind :
       {wire::Envelope::kStepRecords, wire::Envelope::kEval, wire::Envelope::kSwitched,
        wire::Envelope::kPeerSuspect, wire::Envelope::kLeave})
    EXPECT_THAT(received(kind), IsEmpty()) << kind;
  EXPECT_EQ(session_->state(), Session::State::kMember);

  reconnect(9);
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_EQ(registers.size(), 1u);
  EXPECT_EQ(registers[0].register_().member(), 9u);
  EXPECT_EQ(registers[0].register_().generation(), 0u);
  EXPECT_FALSE(registers[0].register_().has_state());
  EXPECT_EQ(host_.forgotten_through.size(), 1u);

  prepare(3);
  start(3);
  applied_step(5, 3);
  loop_.run_for(250);
  EXPECT_THAT(received_batches(), ElementsAre(1));
  EXPECT_THAT(host_.starts, ElementsAre(1, 3));
}

TEST_F(SessionTest, AnAnswerOfTheOldIdentityIsNotGivenByTheNewOne) {
  started();
  host_.hold_close = true;
  prepare(2);
  reconnect(9);
  (void)received(wire::Envelope::kPromise);
  host_.held({1, {0, Phase::kTrain}, ResumePoint{2, Phase::kTrain}});
  loop_.run_for(50);
  EXPECT_THAT(received(wire::Envelope::kPromise), IsEmpty());
  EXPECT_EQ(session_->state(), Session::State::kMember);
}

TEST_F(SessionTest, WhoIsPutOutBecauseItHangsSavesItsStacksFirst) {
  started();
  wire::Envelope envelope;
  envelope.mutable_evict()->set_save_stack(true);
  say(envelope, 1);
  EXPECT_EQ(host_.hangs, 1);
  EXPECT_THAT(host_.exit_codes, ElementsAre(70));
}

TEST_F(SessionTest, TheSameIdentityAgainForgetsNothing) {
  started();
  applied_step(0);
  loop_.run_for(250);
  (void)received_batches();
  reconnect(4);
  EXPECT_THAT(host_.forgotten_through, IsEmpty());
  EXPECT_THAT(received_batches(), ElementsAre(1));
}

}  // namespace
}  // namespace lockstep
