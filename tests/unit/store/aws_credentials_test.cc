#include "comm/store/aws_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/temporary_directory.h"

namespace lockstep::store {
namespace {

class Credentials : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(home_.path(".aws"));
    std::ofstream(home_.path(".aws/" + name)) << text;
  }
  AwsCredentials make() {
    env_.emplace("HOME", home_.path());
    return AwsCredentials(
        [this](const char* name) {
          const auto found = env_.find(name);
          return found == env_.end() ? "" : found->second;
        },
        [this] { return now_; });
  }

  TemporaryDirectory home_;
  std::map<std::string, std::string> env_;
  int64_t now_ = 1'000'000'000;
};

TEST_F(Credentials, TheEnvironmentComesBeforeFiles) {
  write("credentials", "[default]\naws_access_key_id = F\naws_secret_access_key = f\n");
  env_ = {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "e"}, {"AWS_SESSION_TOKEN", "t"}};
  auto credentials = make();
  EXPECT_EQ(*credentials.keys(), (AwsKeys{"E", "e", "t", {}}));
}

TEST_F(Credentials, AProfileIsFoundInEitherFile) {
  write("credentials", "[default]\naws_access_key_id=D\naws_secret_access_key=d\n");
  write("config",
        "[profile lab]\nregion = eu-x-1\ns3 =\n  endpoint_url = http://nested\n"
        "aws_access_key_id=L\naws_secret_access_key=l\nendpoint_url = http://minio:9000\n");
  env_["AWS_PROFILE"] = "lab";
  auto credentials = make();
  EXPECT_EQ(credentials.keys()->key_id, "L");
  EXPECT_EQ(credentials.place().region, "eu-x-1");
  EXPECT_EQ(credentials.place().endpoint, "http://minio:9000");
  env_["AWS_PROFILE"] = "nobody";
  auto unknown = make();
  EXPECT_EQ(unknown.keys().status().code(), Code::kNoInput);
}

TEST_F(Credentials, WithoutAnyThereIsNobody) {
  auto credentials = make();
  EXPECT_EQ(credentials.keys()->key_id, "");
  EXPECT_EQ(credentials.place().region, "us-east-1");
}

TEST_F(Credentials, HalfAKeyIsToldWithoutTheOtherHalf) {
  env_["AWS_SECRET_ACCESS_KEY"] = "geheim";
  auto credentials = make();
  const Status status = credentials.keys().status();
  EXPECT_EQ(status.code(), Code::kBadData);
  EXPECT_THAT(status.message(), testing::Not(testing::HasSubstr("geheim")));
}

TEST_F(Credentials, TheFileIsReadAgainWhenWhatItSaidHasExpired) {
  write("credentials",
        "[default]\naws_access_key_id=A\naws_secret_access_key=a\n"
        "expiration=2001-09-09T01:46:41Z\n");  // a second from now
  auto credentials = make();
  EXPECT_EQ(credentials.keys()->key_id, "A");
  write("credentials", "[default]\naws_access_key_id=B\naws_secret_access_key=b\n");
  EXPECT_EQ(credentials.keys()->key_id, "A");
  now_ += 1;
  EXPECT_EQ(credentials.keys()->key_id, "B");
}

TEST_F(Credentials, AfterARefusalOthersAreLookedFor) {
  write("credentials", "[default]\naws_access_key_id=A\naws_secret_access_key=a\n");
  auto credentials = make();
  const AwsKeys first = *credentials.keys();
  EXPECT_FALSE(credentials.has_newer_than(first));
  write("credentials", "[default]\naws_access_key_id=B\naws_secret_access_key=b\n");
  EXPECT_TRUE(credentials.has_newer_than(first));
  EXPECT_EQ(credentials.keys()->key_id, "B");
}

TEST(Utc, IsReadAndNothingElse) {
  EXPECT_EQ(parse_utc("1970-01-02T00:00:00Z"), 86'400);
  EXPECT_EQ(parse_utc("1970-01-02T00:00:00+02:00"), std::nullopt);
  EXPECT_EQ(parse_utc("soon"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::store
