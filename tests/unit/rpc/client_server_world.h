// Client and server over the network in memory: every deadline in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "comm/rpc/client.h"
#include "comm/rpc/memory_transport.h"
#include "comm/rpc/server.h"
#include "comm/wire/control.pb.h"
#include "tests/unit/rpc/test_support.h"

namespace lockstep::rpc {

inline wire::Envelope heartbeat(uint64_t step) {
  wire::Envelope envelope;
  envelope.mutable_heartbeat()->set_step(step);
  return envelope;
}

struct TestClient {
  std::vector<std::string> events;
  std::vector<uint64_t> steps;
  Status failed;
  std::vector<std::string> distrusted;
  std::vector<std::string> troubles;
  std::unique_ptr<RpcClient> client;
};

class ClientServer : public testing::Test {
 protected:
  void start_server(const std::string& token = "token") {
    auto server = RpcServer::start(
        *server_side_, kAddress, token, logger_,
        {.on_peer = [this](PeerId id, const std::string&) { peers_.push_back(id); },
         .on_message =
             [this](PeerId id, wire::Envelope&& e) {
               steps_.push_back(e.heartbeat().step());
               if (echo_) server_->send(id, e);
             },
         .on_lost = [this](PeerId id, const Status&) { lost_.push_back(id); }});
    ASSERT_TRUE(server.is_ok());
    server_ = std::move(server).value();
  }

  TestClient& add_client(const std::string& token = "token", int64_t give_up_after_ms = 0,
                         int64_t silence_ms = 0) {
    TestClient& test = clients_.emplace_back();
    RpcClient::Options options;
    options.address = [this]() -> Result<Address> {
      attempts_ms_.push_back(loop_.now_ms());
      if (!address_error_.is_ok()) return address_error_;
      return kAddress;
    };
    options.token = token;
    options.give_up_after_ms = give_up_after_ms;
    options.silence_ms = silence_ms;
    options.refusal_is_final = refusal_is_final_;
    options.jitter_seed = clients_.size();
    test.client = std::make_unique<RpcClient>(
        *client_side_, options,
        RpcClient::Handlers{
            .on_ready = [&test] { test.events.push_back("ready"); },
            .on_message =
                [&test](wire::Envelope&& e) { test.steps.push_back(e.heartbeat().step()); },
            .on_lost = [&test](const Status&) { test.events.push_back("lost"); },
            .on_failed =
                [&test](const Status& why) {
                  test.events.push_back("failed");
                  test.failed = why;
                },
            .on_distrust = [&test](const Status& why) { test.distrusted.push_back(why.message()); },
            .on_trouble = [&test](const Status& why) { test.troubles.push_back(why.message()); }});
    EXPECT_TRUE(test.events.empty());
    return test;
  }

  // A connection that never speaks by itself.
  std::shared_ptr<Connection> add_stranger() { return add_stranger(*client_side_); }
  std::shared_ptr<Connection> add_stranger(Transport& from) {
    std::shared_ptr<Connection> stranger;
    from.connect(kAddress, 1'000, [&](auto result) { stranger = result.value(); });
    EXPECT_TRUE(loop_.run_until([&] { return stranger != nullptr; }, 1'000));
    stranger->set_handlers({.on_frame = [](wire::Frame&&) {},
                            .on_close = [this](const Status&) { ++strangers_closed_; }});
    return stranger;
  }

  using Events = std::vector<std::string>;
  const Address kAddress{"coordinator", 1};
  SimLoop loop_;
  MemoryNetwork network_{loop_};
  std::unique_ptr<MemoryTransport> server_side_ = network_.transport("server");
  std::unique_ptr<MemoryTransport> client_side_ = network_.transport("client");
  MemoryLogger logger_;
  std::unique_ptr<RpcServer> server_;
  bool echo_ = false;
  bool refusal_is_final_ = false;
  Status address_error_;  // instead of the address
  std::vector<PeerId> peers_;
  std::vector<PeerId> lost_;
  std::vector<uint64_t> steps_;
  std::deque<TestClient> clients_;
  std::vector<int64_t> attempts_ms_;
  int strangers_closed_ = 0;
};

}  // namespace lockstep::rpc
