// Peers that do not prove the token, never speak, or break the protocol, on either side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "comm/rpc/auth.h"
#include "tests/support/fails_with.h"
#include "tests/unit/rpc/client_server_world.h"

namespace lockstep::rpc {
namespace {

// A peer that refuses has proven nothing: a stranger on the port of a coordinator that starts again
// must not end the workers.
TEST_F(ClientServer, ARefusalIsABrokenConnection) {
  start_server("another");
  TestClient& test = add_client();
  loop_.run_for(60'000);
  EXPECT_TRUE(test.events.empty());
  EXPECT_GT(attempts_ms_.size(), 5u);
  EXPECT_THAT(test.distrusted, testing::ElementsAre(Says("token is wrong"))) << "told once";
  EXPECT_THAT(logger_.lines.now().at(0), AllOf(Names("client:"), Says("token is wrong")));
  EXPECT_TRUE(peers_.empty());
  server_.reset();
  start_server();
  loop_.run_for(60'000);
  EXPECT_EQ(test.events, Events{"ready"}) << "the right one came back";
}

TEST_F(ClientServer, ARefusalEndsACommand) {
  start_server("another");
  refusal_is_final_ = true;
  TestClient& test = add_client();
  loop_.run_for(60'000);
  EXPECT_EQ(test.events, Events{"failed"});
  EXPECT_EQ(test.failed.code(), Code::kRefused);
  EXPECT_EQ(attempts_ms_.size(), 1u);
}

TEST_F(ClientServer, APeerThatNeverSpeaksIsClosedAtTheDeadline) {
  start_server();
  const auto stranger = add_stranger();
  loop_.run_for(limits::kAuthDeadlineMs - 1);
  EXPECT_EQ(strangers_closed_, 0);
  loop_.run_for(1);
  EXPECT_EQ(strangers_closed_, 1);
  ASSERT_EQ(logger_.lines.now().size(), 1u);
  EXPECT_THAT(logger_.lines.now()[0], Says("5000 ms"));
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

// One address fills the door and refills it at once.
TEST_F(ClientServer, AFloodFromOneAddressPushesOutItsOwnAndOthersComeIn) {
  start_server();
  TestClient& early = add_client();
  loop_.run_for(10);
  const auto flooder = network_.transport("flooder");
  std::deque<std::shared_ptr<Connection>> strangers;
  const auto flood = [&] { strangers.push_back(add_stranger(*flooder)); };
  for (size_t i = 0; i < limits::kUnprovenPeers; ++i) flood();
  EXPECT_EQ(strangers_closed_, 0);
  flood();
  loop_.run_for(1);
  EXPECT_EQ(strangers_closed_, 1);
  EXPECT_FALSE(strangers.front()->is_open()) << "the oldest makes room";
  EXPECT_TRUE(early.client->send(heartbeat(5)).is_ok());
  TestClient& late = add_client();
  for (int i = 0; i < 50; ++i) flood();
  loop_.run_for(10);
  EXPECT_EQ(steps_.size(), 1u);
  EXPECT_EQ(late.events, Events{"ready"}) << "at its first attempt";
  EXPECT_EQ(attempts_ms_.size(), 2u);
}

// The run's own members that come all at once: whoever is in the middle of its proof stays.
TEST_F(ClientServer, ManyAddressesAtOnceWaitForTheirTurn) {
  start_server();
  std::vector<std::shared_ptr<Connection>> slow;
  for (size_t i = 0; i < limits::kUnprovenPeers; ++i) {
    const auto node = network_.transport("node-" + std::to_string(i / 8));
    slow.push_back(add_stranger(*node));
  }
  TestClient& newest = add_client();
  loop_.run_for(1);
  EXPECT_EQ(strangers_closed_, 0);
  EXPECT_TRUE(newest.events.empty());
  loop_.run_for(limits::kProofPromptMs + limits::kBackoffMaxMs);
  EXPECT_EQ(newest.events, Events{"ready"}) << "those that took too long made room";
  EXPECT_LT(strangers_closed_, 5);
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
  ClientHandshake handshake("token", to_string(kAddress));
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

TEST_F(ClientServer, AServerWithoutTheTokenIsNotBelievedAndTriedAgain) {
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
    connection->send(ServerHandshake("guess", {to_string(kAddress)}).challenge());
  });
  TestClient& test = add_client();
  loop_.run_for(60'000);
  EXPECT_TRUE(test.events.empty());
  EXPECT_THAT(test.distrusted, testing::ElementsAre(Says("token")));
  EXPECT_GT(attempts_ms_.size(), 5u);
}

TEST_F(ClientServer, AServerThatNeverSpeaksIsTriedAgain) {
  std::vector<std::shared_ptr<Connection>> connections;
  const auto listener = server_side_->listen(
      kAddress, [&](std::shared_ptr<Connection> c) { connections.push_back(std::move(c)); });
  add_client();
  loop_.run_for(limits::kAuthDeadlineMs + limits::kBackoffFirstMs + 1);
  EXPECT_EQ(connections.size(), 2u);
}

}  // namespace
}  // namespace lockstep::rpc
