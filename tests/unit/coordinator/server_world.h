// A RunServer with its parts in memory, and members and an agent that talk to it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/rpc/client.h"
#include "comm/rpc/memory_transport.h"
#include "coordinator/decide/begin_state.h"
#include "coordinator/serve/run_server.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {

inline constexpr char kToken[] = "0123456789abcdef";

// Does what a worker does, in its simplest form.
class FakeMember {
 public:
  FakeMember(rpc::MemoryNetwork& network, const rpc::Address& server, uint32_t local_rank,
             const Options& options, Step steps)
      : transport_(network.transport("w" + std::to_string(local_rank))),
        local_rank_(local_rank),
        shape_(options.shape),
        steps_(steps) {
    rpc::RpcClient::Options client_options;
    client_options.address = [server]() -> Result<rpc::Address> { return server; };
    client_options.token = kToken;
    client_ = std::make_unique<rpc::RpcClient>(
        *transport_, std::move(client_options),
        rpc::RpcClient::Handlers{[this] { register_me(); },
                                 [this](wire::Envelope&& e) { on_message(e); },
                                 [](const Status&) {}, [](const Status&) {}});
  }

  std::optional<uint32_t> goodbye_code;
  uint32_t starts = 0;
  uint32_t beats = 0;
  uint32_t prepares = 0;
  bool leaves = true;
  bool keeps_state = true;
  bool listens_on = false;  // also after the goodbye

 private:
  void register_me() {
    wire::Envelope e;
    *e.mutable_register_() = World::registration(local_rank_);
    e.mutable_register_()->set_member(member_);
    e.mutable_register_()->set_generation(generation_);
    send(e);
  }

  void on_message(const wire::Envelope& e) {
    term_ = e.term();
    if (e.has_registered()) member_ = e.registered().member();
    if (e.has_beat()) ++beats;
    if (e.has_prepare()) {
      ++prepares;
      wire::Envelope answer;
      generation_ = e.generation();
      answer.mutable_promise()->set_generation(generation_);
      if (keeps_state && lived_ != 0) {
        answer.mutable_promise()->set_has_state(true);
        answer.mutable_promise()->mutable_applied()->set_step(steps_);
        answer.mutable_promise()->set_lived(lived_);
        answer.mutable_promise()->mutable_since();
      }
      send(answer);
    }
    if (e.has_start()) {
      lived_ = e.generation();
      if (++starts == 1) train(e.start());
    }
    if (e.has_checkpoint_ack() || (e.has_records_ack() && !is_writer_)) leave();
    if (e.has_goodbye()) {
      goodbye_code = e.goodbye().exit_code();
      if (!listens_on) client_->close();
    }
  }

  void train(const wire::Start& start) {
    is_writer_ = start.writer() == member_;
    wire::Envelope e;
    e.mutable_step_records()->set_batch(1);
    for (Step step = start.resume().step(); step < steps_; ++step) {
      wire::StepRecord* r = e.mutable_step_records()->add_records();
      const StepPlan plan = plan_step(shape_, step);
      r->set_step(step);
      r->set_epoch(plan.epoch);
      r->set_samples(plan.samples);
      r->set_loss(0.5);
      r->mutable_times()->set_forward_us(2000);
    }
    send(e);
    if (!is_writer_) return;
    wire::Envelope c;
    c.mutable_checkpoint()->set_step(steps_);
    c.mutable_checkpoint()->set_name(checkpoint_name({steps_, generation_, member_}));
    c.mutable_checkpoint()->set_manifest_sha256("m");
    c.mutable_checkpoint()->set_weights_sha256("w");
    c.mutable_checkpoint()->set_final(true);
    send(c);
  }

  void leave() {
    if (!leaves || has_left_) return;
    has_left_ = true;
    wire::Envelope e;
    e.mutable_leave()->set_reason(wire::Leave::FINISHED);
    e.mutable_leave()->mutable_applied()->set_step(steps_);
    send(e);
  }

  void send(wire::Envelope e) {
    e.set_term(term_);
    e.set_generation(generation_);
    (void)client_->send(e);
  }

  std::unique_ptr<rpc::MemoryTransport> transport_;
  uint32_t local_rank_;
  RunShape shape_;
  Step steps_;
  std::unique_ptr<rpc::RpcClient> client_;
  MemberId member_ = 0;
  Term term_ = 0;
  Generation generation_ = 0;
  Generation lived_ = 0;
  bool is_writer_ = false;
  bool has_left_ = false;
};

// An agent: says hello whenever it has a connection, and waits for the end.
class FakeAgent {
 public:
  FakeAgent(rpc::MemoryNetwork& network, const rpc::Address& server)
      : transport_(network.transport("agent")) {
    rpc::RpcClient::Options client_options;
    client_options.address = [this, server]() -> Result<rpc::Address> {
      if (knows_address) return server;
      return Status(Code::kUnavailable, "coordinator.json cannot be read now");
    };
    client_options.token = kToken;
    client_options.max_backoff_ms = 200;
    client_ = std::make_unique<rpc::RpcClient>(
        *transport_, std::move(client_options),
        rpc::RpcClient::Handlers{[this] { hello(); },
                                 [this](wire::Envelope&& e) {
                                   if (!e.has_goodbye()) return;
                                   goodbye_code = e.goodbye().exit_code();
                                   client_->close();
                                 },
                                 [](const Status&) {}, [](const Status&) {}});
  }
  std::optional<uint32_t> goodbye_code;
  bool knows_address = true;

 private:
  void hello() {
    wire::Envelope e;
    e.mutable_agent_hello()->set_node("n");
    (void)client_->send(e);
  }
  std::unique_ptr<rpc::MemoryTransport> transport_;
  std::unique_ptr<rpc::RpcClient> client_;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    options_ = small_options();
    options_.run_dir = dir_;
    history_ = std::move(History::open(dir_ + "/history.jsonl", 0)).value();
    serve(begin_state(first_term(), loop_.now_ms()));
  }

  void serve(State state, EarlierTerms earlier = {},
             const rpc::Address& address = {"127.0.0.1", 0}) {
    server_.reset();
    const auto on_end = [this](int code) { ended_ = code; };
    const auto on_term_end = [this](const std::string& why) { term_end_ = why; };
    server_ = std::make_unique<RunServer>(
        RunServer::Parts{loop_, journal_, *history_, *logger_, clock_, metrics_, on_end,
                         on_term_end, [this] { return is_superseded_(); }, nullptr,
                         [](const std::string&) { return Result<std::string>(std::string("m")); }},
        options_, std::move(state), std::move(earlier));
    EXPECT_TRUE(server_->listen(*transport_, address, kToken).is_ok());
    address_ = server_->control_address();
  }

  std::unique_ptr<FakeMember> member(uint32_t local_rank) {
    return std::make_unique<FakeMember>(network_, server_->control_address(), local_rank, options_,
                                        options_.total_steps);
  }
  bool run_to_the_end() {
    return loop_.run_until([this] { return ended_.has_value(); }, 300'000);
  }
  nlohmann::json status() const { return nlohmann::json::parse(server_->status()); }
  nlohmann::json summary() const {
    return nlohmann::json::parse(std::ifstream(dir_ + "/summary.json"));
  }
  size_t history_lines() const {
    std::ifstream file(dir_ + "/history.jsonl");
    return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }

  TemporaryDirectory temporary_;
  std::string dir_ = temporary_.path();
  Options options_;
  rpc::SimLoop loop_;
  rpc::MemoryNetwork network_{loop_};
  std::unique_ptr<rpc::MemoryTransport> transport_ = network_.transport("coordinator");
  SystemClock clock_;
  CoordinatorMetrics metrics_{"test", BuildInfo{}};
  std::unique_ptr<Logger> logger_ = null_logger();
  MemoryJournal journal_;
  std::unique_ptr<History> history_;
  std::optional<int> ended_;
  std::optional<std::string> term_end_;
  std::function<bool()> is_superseded_ = [] { return false; };
  rpc::Address address_;
  std::unique_ptr<RunServer> server_;
};

}  // namespace lockstep::coordinator
