#include "comm/rpc/auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/base/file.h"
#include "comm/wire/control.pb.h"
#include "tests/support/fails_with.h"

namespace lockstep::rpc {
namespace {

using wire::FrameKind;

const std::string kHere = "10.2.0.1:4711";

TEST(Handshake, BothSidesWithTheTokenProveThemselves) {
  ServerHandshake server("token", {kHere});
  ClientHandshake client("token", kHere);
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
  ServerHandshake server("token", {kHere});
  ClientHandshake client("nekot", kHere);
  const auto accept = server.on_response(client.on_frame(server.challenge())->reply);
  ASSERT_FALSE(accept.is_ok());
  EXPECT_EQ(accept.status(), Status(Code::kRefused, "the token is wrong"));
  const auto told = client.on_frame(ServerHandshake::refusal(accept.status()));
  EXPECT_EQ(told.status(), Status(Code::kRefused, "the server refused us: the token is wrong"));
}

TEST(Handshake, AServerWithoutTheTokenIsRefusedByTheClient) {
  ServerHandshake thief("guess", {kHere});
  ClientHandshake client("token", kHere);
  const auto response = client.on_frame(thief.challenge());
  wire::AuthAccept lie;
  lie.set_proof(std::string(32, 'x'));
  EXPECT_EQ(client.on_frame(make_frame(FrameKind::kAuthAccept, lie)).status().code(),
            Code::kRefused);
}

TEST(Handshake, AProofPlayedBackToItsMakerProvesNothing) {
  ServerHandshake server("token", {kHere});
  ClientHandshake client("token", kHere);
  wire::AuthResponse response;
  ASSERT_TRUE(response.ParseFromString(client.on_frame(server.challenge())->reply.payload));
  wire::AuthAccept mirrored;
  mirrored.set_proof(response.proof());
  EXPECT_FALSE(client.on_frame(make_frame(FrameKind::kAuthAccept, mirrored)).is_ok());
}

TEST(Handshake, AnAnswerToAnotherConnectionsChallengeProvesNothing) {
  ServerHandshake one("token", {kHere});
  ServerHandshake other("token", {kHere});
  ClientHandshake client("token", kHere);
  EXPECT_FALSE(other.on_response(client.on_frame(one.challenge())->reply).is_ok());
}

// A process that has an old coordinator's port sends what it hears on to the new coordinator.
TEST(Handshake, AProofForOneAddressOpensNoOther) {
  ServerHandshake server("token", {"10.2.0.1:4712", "head:4712"});
  ClientHandshake client("token", kHere);
  const Status refused = server.on_response(client.on_frame(server.challenge())->reply).status();
  EXPECT_THAT(refused,
              FailsWith(Code::kRefused, Names(kHere, "10.2.0.1:4712"), Advises("comm.advertise")));
  ClientHandshake liar("token", kHere);
  wire::AuthResponse response;
  ASSERT_TRUE(response.ParseFromString(liar.on_frame(server.challenge())->reply.payload));
  response.set_address("10.2.0.1:4712");
  EXPECT_FALSE(server.on_response(make_frame(FrameKind::kAuthResponse, response)).is_ok())
      << "the address is part of the proof";
}

TEST(Handshake, AServerIsKnownByItsAddressAndByItsName) {
  for (const char* dialled : {"10.2.0.1:4711", "head:4711"}) {
    ServerHandshake server("token", {kHere, "head:4711"});
    ClientHandshake client("token", dialled);
    const auto accept = server.on_response(client.on_frame(server.challenge())->reply);
    ASSERT_TRUE(accept.is_ok()) << dialled;
    EXPECT_TRUE(client.on_frame(*accept)->done) << dialled;
  }
}

TEST(Handshake, FramesOutOfTurnAreRefused) {
  ClientHandshake client("token", kHere);
  EXPECT_FALSE(client.on_frame({FrameKind::kAuthAccept, ""}).is_ok());
  EXPECT_FALSE(client.on_frame({FrameKind::kEnvelope, ""}).is_ok());
  ServerHandshake server("token", {kHere});
  EXPECT_FALSE(server.on_response({FrameKind::kEnvelope, ""}).is_ok());
}

TEST(Handshake, AnotherVersionIsShownBesideOurs) {
  wire::AuthChallenge challenge;
  challenge.set_version(9);
  ClientHandshake client("token", kHere);
  const Status refused = client.on_frame(make_frame(FrameKind::kAuthChallenge, challenge)).status();
  EXPECT_EQ(refused.message(), "the peer speaks protocol version 9, this program version " +
                                   std::to_string(wire::kWireVersion));
  EXPECT_EQ(refused.obstacle(), Obstacle::kVersion);
}

}  // namespace
}  // namespace lockstep::rpc
