// A session over the in-memory network, the coordinator that the test plays, and a host that writes
// down what the session says to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/rpc/memory_transport.h"
#include "comm/rpc/server.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/run/checkpoint/test_state.h"
#include "worker/session/session.h"

namespace lockstep::testing {

inline constexpr char kToken[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

class NotingHost final : public SessionHost {
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
  Heartbeat heartbeat() const override { return {7, Phase::kEval, 2, 5, true}; }
  Standing standing() const override { return where; }
  InHand in_hand() const override { return held_samples; }

  Status fits;
  bool hold_close = false;
  Closed held;
  Standing where;
  InHand held_samples;
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
  // Does what the training thread does at an agreed switch: the gate first.
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

  // Returns the messages of one kind that have come since the last call.
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

  TemporaryDirectory temporary_;
  rpc::SimLoop loop_;
  rpc::MemoryNetwork network_{loop_};
  std::unique_ptr<rpc::MemoryTransport> worker_side_ = network_.transport("worker");
  std::unique_ptr<rpc::MemoryTransport> coordinator_side_ = network_.transport("coordinator");
  std::unique_ptr<Logger> logger_ = null_logger();
  NotingHost host_;
  rpc::Address address_;
  std::unique_ptr<rpc::RpcServer> server_;
  rpc::PeerId peer_ = 0;
  std::vector<wire::Envelope> got_;
  std::unique_ptr<Session> session_;
};

}  // namespace lockstep::testing
