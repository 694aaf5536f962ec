// The token's file: who may read it, and what happens when it is replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/rpc/auth.h"
#include "comm/tls/run_token.h"
#include "tests/support/fails_with.h"
#include "tests/unit/rpc/test_support.h"

namespace lockstep::rpc {
namespace {

class TokenFiles : public testing::Test {
 protected:
  TokenFiles() : path_(testing::TempDir() + "lockstep-token-" + std::to_string(::getpid())) {}
  ~TokenFiles() override { ::unlink(path_.c_str()); }
  std::string path_;
};

TEST_F(TokenFiles, IsReadBackByItsOwnerAlone) {
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

TEST_F(TokenFiles, ThatOthersCanReadIsRefused) {
  ASSERT_TRUE(create_token_file(path_).is_ok());
  for (const mode_t mode : {0640, 0604, 0660, 0622, 0700}) {
    ::chmod(path_.c_str(), mode);
    const auto token = read_token_file(path_);
    ASSERT_FALSE(token.is_ok()) << std::oct << mode;
    EXPECT_THAT(token, FailsWith(Code::kConfig, Names(path_), Advises("chmod 600")));
  }
}

TEST_F(TokenFiles, ThatIsMissingOrDamagedIsNamed) {
  EXPECT_EQ(read_token_file(path_).status().code(), Code::kNoInput);
  for (const std::string& content :
       {std::string(), std::string("abc\n"), std::string(64, 'g'), std::string(65, 'a')}) {
    ASSERT_TRUE(replace_file(path_, content, 0600).is_ok());
    EXPECT_EQ(read_token_file(path_).status().code(), Code::kConfig);
  }
}

// Returns whether a handshake succeeds in which `client` has an older or newer token.
bool is_accepted(const Token& server_token, const std::string& client_token) {
  ServerHandshake server(server_token, {"here:1"});
  ClientHandshake client(client_token, "here:1");
  const auto response = client.on_frame(server.challenge());
  const auto accept = server.on_response(response->reply);
  if (!accept.is_ok()) return false;
  return client.on_frame(*accept)->done;
}

TEST_F(TokenFiles, AReplacedTokenHoldsAtOnceAndTheOldOneStays) {
  MemoryLogger logger;
  const std::string before = *create_token_file(path_);
  const Token token(*rpc::TokenFile::open(path_, logger));
  const std::string after = *create_token_file(path_);
  EXPECT_TRUE(is_accepted(token, after)) << "it is read before anybody is refused";
  EXPECT_TRUE(is_accepted(token, before));
  EXPECT_EQ(token.newest(), after);
  EXPECT_EQ(token.accepted(), (std::vector<std::string>{after, before}));
  const std::string third = *create_token_file(path_);
  EXPECT_TRUE(is_accepted(token, third));
  EXPECT_FALSE(is_accepted(token, before)) << "two replacements ago";
  EXPECT_EQ(logger.lines.now().size(), 2u);
}

TEST_F(TokenFiles, ATokenThatCannotBeUsedIsSaidOnceAndTheOldOneStays) {
  MemoryLogger logger;
  const std::string before = *create_token_file(path_);
  const Token token(*rpc::TokenFile::open(path_, logger));
  ASSERT_TRUE(replace_file(path_, std::string(64, 'a') + "\n", 0644).is_ok());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(is_accepted(token, std::string(64, 'a')));
  EXPECT_TRUE(is_accepted(token, before));
  ASSERT_EQ(logger.lines.now().size(), 1u);
  EXPECT_NE(logger.lines.now()[0].find("chmod 600"), std::string::npos);
}

TEST_F(TokenFiles, TheTokenOfALaterStartIsNobodysBusinessWhoWasThereBefore) {
  MemoryLogger logger;
  const std::string before = *create_run_token(path_);
  EXPECT_EQ(*read_token_file(path_), before);
  const Token token(*rpc::TokenFile::open(path_, logger));
  const std::string after = *create_run_token(path_);
  EXPECT_FALSE(is_accepted(token, after));
  EXPECT_EQ(token.newest(), before);
}

}  // namespace
}  // namespace lockstep::rpc
