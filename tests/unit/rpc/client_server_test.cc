// Messages, losses and the pauses between attempts, of client and server over the network in
// memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/unit/rpc/client_server_world.h"

namespace lockstep::rpc {
namespace {

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
  EXPECT_THAT(test.failed, FailsWith(Code::kUnavailable, Names("3000 ms", "coordinator:1")));
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

TEST_F(ClientServer, WhyNoAttemptSucceedsIsToldOnceForEachReason) {
  TestClient& test = add_client();
  loop_.run_for(RpcClient::kTroubleMs - limits::kBackoffMaxMs);
  EXPECT_TRUE(test.troubles.empty()) << "a coordinator that is started again is soon there";
  loop_.run_for(30'000);
  ASSERT_EQ(test.troubles.size(), 1u);
  EXPECT_THAT(test.troubles[0], Names("coordinator:1"));
  address_error_ = Status(Code::kUnavailable, "trainer.invalid: no such name");
  loop_.run_for(30'000);
  ASSERT_EQ(test.troubles.size(), 2u);
  EXPECT_THAT(test.troubles[1], Names("trainer.invalid"));
  EXPECT_THAT(test.client->last_failure().message(), Names("trainer.invalid"));
  address_error_ = Status::ok();
  start_server();
  loop_.run_for(10'000);
  EXPECT_EQ(test.events, Events{"ready"});
  EXPECT_TRUE(test.client->last_failure().is_ok());
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

TEST_F(ClientServer, AServerThatHangsIsLostAndTriedAgain) {
  start_server();
  TestClient& test = add_client("token", 0, 30'000);
  loop_.run_for(1'000);
  for (int i = 0; i < 20; ++i) {  // beats
    server_->send_all(heartbeat(0));
    loop_.run_for(5'000);
  }
  EXPECT_EQ(test.events, Events{"ready"});
  loop_.run_for(31'000);
  EXPECT_EQ(test.events, (Events{"ready", "lost", "ready"}));
}

TEST_F(ClientServer, AnyWordBeginsTheSilenceAnew) {
  start_server();
  TestClient& test = add_client("token", 0, 30'000);
  loop_.run_for(1'000);
  loop_.run_for(5'000 * (limits::kSilenceLooks - 1));
  server_->send_all(heartbeat(7));
  loop_.run_for(5'000 * (limits::kSilenceLooks - 1));
  EXPECT_EQ(test.steps, std::vector<uint64_t>{7});
  EXPECT_EQ(test.events, Events{"ready"});
}

TEST_F(ClientServer, EveryProvenPeerHearsWhatIsSaidToAll) {
  start_server();
  TestClient& one = add_client();
  TestClient& other = add_client();
  const auto stranger = add_stranger();
  loop_.run_for(100);
  server_->send_all(heartbeat(9));
  loop_.run_for(100);
  EXPECT_EQ(one.steps, std::vector<uint64_t>{9});
  EXPECT_EQ(other.steps, std::vector<uint64_t>{9});
  EXPECT_EQ(strangers_closed_, 0);
}

}  // namespace
}  // namespace lockstep::rpc
