// Client and server over the network in memory: every deadline in virtual time.
#include <gtest/gtest.h>

#include <deque>

#include "comm/base/limits.h"
#include "comm/rpc/auth.h"
#include "comm/rpc/client.h"
#include "comm/rpc/memory_transport.h"
#include "comm/rpc/server.h"
#include "comm/wire/control.pb.h"
#include "test_support.h"

namespace lockstep::rpc {
namespace {

wire::Envelope heartbeat(uint64_t step) {
  wire::Envelope envelope;
  envelope.mutable_heartbeat()->set_step(step);
  return envelope;
}

struct TestClient {
  std::vector<std::string> events;
  std::vector<uint64_t> steps;
  Status failed;
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

  TestClient& add_client(const std::string& token = "token", int64_t give_up_after_ms = 0) {
    TestClient& test = clients_.emplace_back();
    RpcClient::Options options;
    options.address = [this]() -> Result<Address> {
      attempts_ms_.push_back(loop_.now_ms());
      return kAddress;
    };
    options.token = token;
    options.give_up_after_ms = give_up_after_ms;
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
                }});
    EXPECT_TRUE(test.events.empty());
    return test;
  }

  // A connection that never speaks by itself.
  std::shared_ptr<Connection> add_stranger() {
    std::shared_ptr<Connection> stranger;
    client_side_->connect(kAddress, 1'000, [&](auto result) { stranger = result.value(); });
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
  std::vector<PeerId> peers_;
  std::vector<PeerId> lost_;
  std::vector<uint64_t> steps_;
  std::deque<TestClient> clients_;
  std::vector<int64_t> attempts_ms_;
  int strangers_closed_ = 0;
};

TEST_F(ClientServer, MessagesTravelBothWays) {
  echo_ = true;
  start_server();
  TestClient& test = add_client();
  EXPECT_EQ(test.client->send(heartbeat(0)).code(), Code::kUnavailable);
  loop_.run_for(10);
  ASSERT_EQ(test.events, Events{"ready"});
  EXPECT_EQ(server_->peers(), 1u);
  for (uint64_t i = 1; i <= 3; ++i) EXPECT_TRUE(test.client->send(heartbeat(i)).is_ok());
  loop_.run_for(10);
  EXPECT_EQ(steps_, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(test.steps, steps_);
  EXPECT_TRUE(logger_.lines.now().empty());
}

TEST_F(ClientServer, AMessageAsLargeAsTheLimitAllowsIsDeliveredAfterTheProof) {
  start_server();
  TestClient& test = add_client();
  loop_.run_for(10);
  wire::Envelope large = heartbeat(7);
  large.mutable_goodbye()->set_message(std::string(limits::kFrameBytes - 100, 'x'));
  EXPECT_TRUE(test.client->send(large).is_ok());
  loop_.run_for(10);
  EXPECT_EQ(steps_.size(), 1u);
  large.mutable_goodbye()->set_message(std::string(limits::kFrameBytes, 'x'));
  EXPECT_EQ(test.client->send(large).code(), Code::kInternal);
}

TEST_F(ClientServer, AWrongTokenIsFinalAndOneLogLine) {
  start_server();
  TestClient& test = add_client("another");
  loop_.run_for(60'000);
  EXPECT_EQ(test.events, Events{"failed"});
  EXPECT_EQ(test.failed.code(), Code::kRefused);
  EXPECT_EQ(attempts_ms_.size(), 1u);
  ASSERT_EQ(logger_.lines.now().size(), 1u);
  EXPECT_EQ(logger_.lines.now()[0].find("refused a connection from client:"), 0u);
  EXPECT_NE(logger_.lines.now()[0].find("the token is wrong"), std::string::npos);
  EXPECT_TRUE(peers_.empty());
}

TEST_F(ClientServer, APeerThatNeverSpeaksIsClosedAtTheDeadline) {
  start_server();
  const auto stranger = add_stranger();
  loop_.run_for(limits::kAuthDeadlineMs - 1);
  EXPECT_EQ(strangers_closed_, 0);
  loop_.run_for(1);
  EXPECT_EQ(strangers_closed_, 1);
  ASSERT_EQ(logger_.lines.now().size(), 1u);
  EXPECT_NE(logger_.lines.now()[0].find("did not prove the token within 5000 ms"),
            std::string::npos);
}

TEST_F(ClientServer, AnUnprovenPeersEnvelopeNeverReachesTheHandler) {
  start_server();
  const auto stranger = add_stranger();
  stranger->send(make_frame(wire::FrameKind::kEnvelope, heartbeat(1)));
  loop_.run_for(10);
  EXPECT_TRUE(steps_.empty());
  EXPECT_EQ(strangers_closed_, 1);
  EXPECT_EQ(logger_.lines.now().size(), 1u);
}

TEST_F(ClientServer, TooManyUnprovenCloseTheNewestAndOthersGoOn) {
  start_server();
  TestClient& early = add_client();
  loop_.run_for(10);
  std::vector<std::shared_ptr<Connection>> strangers;
  for (size_t i = 0; i < limits::kUnprovenPeers; ++i)
    strangers.push_back(add_stranger());
  EXPECT_EQ(strangers_closed_, 0);
  strangers.push_back(add_stranger());
  loop_.run_for(1);
  EXPECT_EQ(strangers_closed_, 1);
  EXPECT_TRUE(strangers.front()->is_open());
  EXPECT_TRUE(early.client->send(heartbeat(5)).is_ok());
  TestClient& late = add_client();
  loop_.run_for(100);
  EXPECT_EQ(steps_.size(), 1u);
  EXPECT_TRUE(late.events.empty());
  loop_.run_for(limits::kAuthDeadlineMs + limits::kBackoffMaxMs);
  EXPECT_EQ(late.events, Events{"ready"}) << "it comes back when the strangers are gone";
}

TEST_F(ClientServer, AFloodOfStrangersIsNotAFloodOfLogLines) {
  start_server();
  for (int i = 0; i < 500; ++i) {
    const auto stranger = add_stranger();
    stranger->send({wire::FrameKind::kAuthResponse, "\xff"});
    loop_.run_for(1);
  }
  EXPECT_EQ(strangers_closed_, 500);
  EXPECT_EQ(logger_.lines.now().size(), static_cast<size_t>(limits::kRefusalLogLines));
  loop_.run_for(limits::kRefusalLogWindowMs);
  EXPECT_EQ(logger_.lines.now().back(), "refused 480 more connections in the last 10 s");
}

TEST_F(ClientServer, APeerThatBreaksTheProtocolAfterItsProofIsLost) {
  start_server();
  auto stranger = add_stranger();
  ClientHandshake handshake("token");
  stranger->set_handlers({.on_frame =
                              [&](wire::Frame&& frame) {
                                auto progress = handshake.on_frame(frame);
                                ASSERT_TRUE(progress.is_ok());
                                if (progress->has_reply) stranger->send(progress->reply);
                                if (progress->done)
                                  stranger->send({wire::FrameKind::kEnvelope, "\xff"});
                              },
                          .on_close = [this](const Status&) { ++strangers_closed_; }});
  loop_.run_for(10);
  EXPECT_EQ(peers_.size(), 1u);
  EXPECT_EQ(lost_, peers_);
  EXPECT_EQ(strangers_closed_, 1);
  EXPECT_EQ(server_->peers(), 0u);
}

TEST_F(ClientServer, AReturningClientIsAnotherPeer) {
  start_server();
  TestClient& test = add_client();
  loop_.run_for(10);
  network_.cut("client", "server");
  loop_.run_for(1'000);
  EXPECT_EQ(test.events, (Events{"ready", "lost", "ready"}));
  EXPECT_EQ(peers_.size(), 2u);
  EXPECT_NE(peers_[0], peers_[1]);
  EXPECT_EQ(lost_, std::vector<PeerId>{peers_[0]});
}

TEST_F(ClientServer, DisconnectDeliversTheLastMessageAndIsSilentHere) {
  start_server();
  TestClient& test = add_client();
  loop_.run_for(10);
  server_->send(peers_[0], heartbeat(9));
  server_->disconnect(peers_[0]);
  server_->send(peers_[0], heartbeat(10));
  EXPECT_EQ(server_->peers(), 0u);
  loop_.run_for(1);
  EXPECT_EQ(test.steps, std::vector<uint64_t>{9});
  EXPECT_EQ(test.events, (Events{"ready", "lost"}));
  EXPECT_TRUE(lost_.empty());
}

TEST_F(ClientServer, PausesBetweenAttemptsGrowToTheLimitAndNoFurther) {
  add_client();
  loop_.run_for(60'000);
  ASSERT_GT(attempts_ms_.size(), 20u);
  for (size_t i = 1; i < attempts_ms_.size(); ++i) {
    const int64_t pause_ms = attempts_ms_[i] - attempts_ms_[i - 1];
    const int64_t full_ms = std::min<int64_t>(
        limits::kBackoffMaxMs, int64_t{limits::kBackoffFirstMs} << std::min<size_t>(i - 1, 20));
    EXPECT_GE(pause_ms, full_ms / 2) << i;
    EXPECT_LE(pause_ms, full_ms) << i;
  }
}

TEST_F(ClientServer, AClientGivesUpWhenItIsTold) {
  TestClient& test = add_client("token", 3'000);
  loop_.run_for(2'999);
  EXPECT_TRUE(test.events.empty());
  loop_.run_for(1);
  EXPECT_EQ(test.events, Events{"failed"});
  EXPECT_EQ(test.failed.code(), Code::kUnavailable);
  EXPECT_NE(test.failed.message().find("gave up after 3000 ms: cannot connect to coordinator:1"),
            std::string::npos);
  const size_t attempts = attempts_ms_.size();
  loop_.run_for(60'000);
  EXPECT_EQ(attempts_ms_.size(), attempts);
}

TEST_F(ClientServer, TheClockOfGivingUpStartsAgainAtALoss) {
  start_server();
  TestClient& test = add_client("token", 3'000);
  loop_.run_for(10'000);
  network_.crash("server");
  loop_.run_for(2'000);
  start_server();
  loop_.run_for(10'000);
  EXPECT_EQ(test.events, (Events{"ready", "lost", "ready"}));
}

TEST_F(ClientServer, AServerWithoutTheTokenIsFinalForTheClient) {
  std::shared_ptr<Connection> connection;
  const auto listener = server_side_->listen(kAddress, [&](std::shared_ptr<Connection> c) {
    connection = std::move(c);
    connection->set_handlers({.on_frame =
                                  [&](wire::Frame&&) {
                                    wire::AuthAccept lie;
                                    lie.set_proof(std::string(32, 'x'));
                                    connection->send(make_frame(wire::FrameKind::kAuthAccept, lie));
                                  },
                              .on_close = [](const Status&) {}});
    connection->send(ServerHandshake("guess").challenge());
  });
  TestClient& test = add_client();
  loop_.run_for(60'000);
  EXPECT_EQ(test.events, Events{"failed"});
  EXPECT_NE(test.failed.message().find("does not know the token"), std::string::npos);
  EXPECT_EQ(attempts_ms_.size(), 1u);
}

TEST_F(ClientServer, AServerThatNeverSpeaksIsTriedAgain) {
  std::vector<std::shared_ptr<Connection>> connections;
  const auto listener = server_side_->listen(
      kAddress, [&](std::shared_ptr<Connection> c) { connections.push_back(std::move(c)); });
  add_client();
  loop_.run_for(limits::kAuthDeadlineMs + limits::kBackoffFirstMs + 1);
  EXPECT_EQ(connections.size(), 2u);
}

TEST_F(ClientServer, AClosedClientHearsNothingMore) {
  start_server();
  TestClient& test = add_client();
  loop_.run_for(10);
  EXPECT_TRUE(test.client->send(heartbeat(3)).is_ok());
  test.client.reset();
  loop_.run_for(60'000);
  EXPECT_EQ(test.events, Events{"ready"});
  EXPECT_EQ(steps_, std::vector<uint64_t>{3}) << "what was queued still arrived";
  EXPECT_EQ(lost_, peers_);
}

TEST_F(ClientServer, ADestroyedServerCallsNobody) {
  start_server();
  TestClient& test = add_client();
  loop_.run_for(10);
  EXPECT_TRUE(test.client->send(heartbeat(3)).is_ok());
  server_.reset();
  loop_.run_for(10);
  EXPECT_TRUE(steps_.empty());
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(test.events, (Events{"ready", "lost"}));
}

}  // namespace
}  // namespace lockstep::rpc
