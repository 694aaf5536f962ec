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
  EXPECT_EQ(client.on_frame(make_frame(FrameKind::kAuthChallenge, challenge)).status().message(),
            "the peer speaks protocol version 9, this program version 1");
}

class TokenFile : public testing::Test {
 protected:
  TokenFile() : path_(testing::TempDir() + "lockstep-token-" + std::to_string(::getpid())) {}
  ~TokenFile() override { ::unlink(path_.c_str()); }
  std::string path_;
};

TEST_F(TokenFile, IsReadBackByItsOwnerAlone) {
  const auto token = create_token_file(path_);
  ASSERT_TRUE(token.is_ok());
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(read_token_file(path_).value(), *token);
  ::chmod(path_.c_str(), 0400);
  EXPECT_TRUE(read_token_file(path_).is_ok());
  EXPECT_NE(create_token_file(path_).value(), *token);
}

TEST_F(TokenFile, ThatOthersCanReadIsRefused) {
  ASSERT_TRUE(create_token_file(path_).is_ok());
  for (const mode_t mode : {0640, 0604, 0660, 0622, 0700}) {
    ::chmod(path_.c_str(), mode);
    const auto token = read_token_file(path_);
    ASSERT_FALSE(token.is_ok()) << std::oct << mode;
    EXPECT_EQ(token.status().code(), Code::kConfig);
    EXPECT_NE(token.status().message().find("chmod 600"), std::string::npos);
  }
}

TEST_F(TokenFile, ThatIsMissingOrDamagedIsNamed) {
  EXPECT_EQ(read_token_file(path_).status().code(), Code::kNoInput);
  for (const std::string& content :
       {std::string(), std::string("abc\n"), std::string(64, 'g'), std::string(65, 'a')}) {
    ASSERT_TRUE(replace_file(path_, content, 0600).is_ok());
    EXPECT_EQ(read_token_file(path_).status().code(), Code::kConfig);
  }
}

}  // namespace
}  // namespace lockstep::rpc
