#include "comm/rpc/auth.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/base/file.h"
#include "comm/wire/control.pb.h"

namespace lockstep::rpc {
namespace {

using wire::FrameKind;

TEST(Handshake, BothSidesWithTheTokenProveThemselves) {
  ServerHandshake server("token");
  ClientHandshake client("token");
  auto response = client.on_frame(server.challenge());
  ASSERT_TRUE(response.is_ok());
  ASSERT_TRUE(response->has_reply);
  EXPECT_FALSE(response->done);
  auto accept = server.on_response(response->reply);
  ASSERT_TRUE(accept.is_ok());
  auto done = client.on_frame(*accept);
  ASSERT_TRUE(done.is_ok());
  EXPECT_TRUE(done->done);
}

TEST(Handshake, AClientWithAnotherTokenIsRefusedForGood) {
  ServerHandshake server("token");
  ClientHandshake client("nekot");
  const auto accept = server.on_response(client.on_frame(server.challenge())->reply);
  ASSERT_FALSE(accept.is_ok());
  EXPECT_EQ(accept.status(), Status(Code::kRefused, "the token is wrong"));
  const auto told = client.on_frame(ServerHandshake::refusal(accept.status()));
  EXPECT_EQ(told.status(), Status(Code::kRefused, "the server refused us: the token is wrong"));
}

TEST(Handshake, AServerWithoutTheTokenIsRefusedByTheClient) {
  ServerHandshake thief("guess");
  ClientHandshake client("token");
  const auto response = client.on_frame(thief.challenge());
  wire::AuthAccept lie;
  lie.set_proof(std::string(32, 'x'));
  EXPECT_EQ(client.on_frame(make_frame(FrameKind::kAuthAccept, lie)).status().code(),
            Code::kRefused);
}

TEST(Handshake, AProofPlayedBackToItsMakerProvesNothing) {
  ServerHandshake server("token");
  ClientHandshake client("token");
  wire::AuthResponse response;
  ASSERT_TRUE(response.ParseFromString(client.on_frame(server.challenge())->reply.payload));
  wire::AuthAccept mirrored;
  mirrored.set_proof(response.proof());
  EXPECT_FALSE(client.on_frame(make_frame(FrameKind::kAuthAccept, mirrored)).is_ok());
}

TEST(Handshake, AnAnswerToAnotherConnectionsChallengeProvesNothing) {
  ServerHandshake one("token");
  ServerHandshake other("token");
  ClientHandshake client("token");
  EXPECT_FALSE(other.on_response(client.on_frame(one.challenge())->reply).is_ok());
}

TEST(Handshake, FramesOutOfTurnAreRefused) {
  ClientHandshake client("token");
  EXPECT_FALSE(client.on_frame({FrameKind::kAuthAccept, ""}).is_ok());
  EXPECT_FALSE(client.on_frame({FrameKind::kEnvelope, ""}).is_ok());
  ServerHandshake server("token");
  EXPECT_FALSE(server.on_response({FrameKind::kEnvelope, ""}).is_ok());
}

TEST(Handshake, AnotherVersionIsShownBesideOurs) {
  wire::AuthChallenge challenge;
  challenge.set_version(9);
  ClientHandshake client("token");
  const Status refused = client.on_frame(make_frame(FrameKind::kAuthChallenge, challenge)).status();
  EXPECT_EQ(refused.message(), "the peer speaks protocol version 9, this program version 1");
  EXPECT_EQ(refused.obstacle(), Obstacle::kVersion);
}

}  // namespace
}  // namespace lockstep::rpc
