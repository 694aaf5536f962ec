// A bucket that fails, lies or refuses: what callers of BlobStore are told.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <thread>

#include "tests/support/fails_with.h"
#include "tests/unit/store/bucket_server.h"

namespace lockstep::store {
namespace {

TEST(S3Faults, AStoreThatIsAwayIsToldWithTheNumberOfAttempts) {
  const BucketServer server(R"({"away": true})");
  EXPECT_THAT(server.open()->create("k", "x"),
              FailsWith(Code::kUnavailable, Names("s3://runs/first run/k"), Says("6 attempts")));
}

TEST(S3Faults, OneThatNeverAnswersEndsTheCall) {
  const BucketServer server(R"({"stall": 1})");
  S3Options options = server.options();
  options.stall_s = 1;
  options.retries.attempts = 1;
  const std::atomic<bool> never = false;
  EXPECT_THAT(make_s3_blobs("s3://runs", options, never)->get("k", kMost),
              FailsWith(Code::kUnavailable, Names("k"), Says("stalled")));
}

// Without the stop it would last for a minute.
TEST(S3Faults, AStopEndsTheCall) {
  const BucketServer server(R"({"stall": 1})");
  std::atomic<bool> stop = false;
  S3Options options = server.options();
  options.stall_s = 60;
  const auto blobs = make_s3_blobs("s3://runs", options, stop);
  const auto begin = std::chrono::steady_clock::now();
  auto call = std::async(std::launch::async, [&] { return blobs->get("k", kMost).status(); });
  EXPECT_EQ(call.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  stop = true;
  EXPECT_EQ(call.get().code(), Code::kAborted);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// A server that answers each request with one text, whatever it was, and then closes.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &bytes);
    endpoint_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  std::unique_ptr<BlobStore> open() const {
    S3Options options;
    options.retries = {.attempts = 2, .pause_ms = 1};
    options.env = [endpoint = endpoint_](const char* name) {
      return std::string(name) == "AWS_ENDPOINT_URL" ? endpoint : std::string();
    };
    return make_s3_blobs("s3://runs", options, never_);
  }

 private:
  void serve() {
    for (int peer = ::accept(listener_, nullptr, nullptr); peer >= 0;
         peer = ::accept(listener_, nullptr, nullptr)) {
      char request[4096];
      (void)::recv(peer, request, sizeof request, 0);
      (void)::send(peer, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      ::shutdown(peer, SHUT_WR);
      while (::recv(peer, request, sizeof request, 0) > 0) {
      }
      ::close(peer);
    }
  }

  const std::string answer_;
  const std::atomic<bool> never_ = false;
  int listener_ = -1;
  std::string endpoint_;
  std::thread thread_;
};

std::string answer_of(const std::string& status, const std::string& headers,
                      const std::string& body) {
  return "HTTP/1.1 " + status + "\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

TEST(S3Faults, AStoreThatCannotCreateOnlyOnceIsNotAwayButOfNoUse) {
  const OneAnswer server(
      answer_of("501 Not Implemented", "", "<Error><Code>NotImplemented</Code></Error>"));
  EXPECT_THAT(server.open()->create("k", "x"),
              FailsWith(Code::kNoInput, Says("If-None-Match"), Advises("another store")));
}

TEST(S3Faults, TheRegionOfABucketIsTakenFromTheHeader) {
  const OneAnswer server(answer_of("301 Moved Permanently", "x-amz-bucket-region: eu-north-1\r\n",
                                   "<Error><Code>PermanentRedirect</Code></Error>"));
  EXPECT_THAT(server.open()->create("k", "x"),
              FailsWith(Code::kRefused, Advises("AWS_REGION=eu-north-1")));
  // Some servers name theirs in every answer.
  const OneAnswer busy(answer_of("503 Slow Down", "x-amz-bucket-region: eu-north-1\r\n", ""));
  EXPECT_THAT(busy.open()->create("k", "x"), FailsWith(Code::kUnavailable, Says("503")));
  const OneAnswer other(answer_of("307 Temporary Redirect", "Location: https://h/\r\n", ""));
  EXPECT_THAT(other.open()->get("k", kMost), FailsWith(Code::kRefused, Advises("redirects")));
}

TEST(S3Faults, AnAnswerThatIsNoneOfAStoreIsNotBelieved) {
  const OneAnswer page(answer_of("200 OK", "", "<html>please sign in</html>"));
  EXPECT_EQ(page.open()->create("k", "x").status().code(), Code::kNoInput);
  EXPECT_FALSE(page.open()->complete("k", "u", {{1, "e", 1, {}}}).is_ok());
  EXPECT_FALSE(page.open()->list("").is_ok());
  const OneAnswer missing(answer_of("404 Not Found", "", "<html>no such page</html>"));
  EXPECT_FALSE(missing.open()->get("k", kMost).is_ok());
  const OneAnswer packed(answer_of("200 OK", "Content-Encoding: gzip\r\nETag: e\r\n", "packed"));
  EXPECT_EQ(packed.open()->get("k", kMost).status().code(), Code::kUnavailable);
  // Nothing says whether it is whole.
  const OneAnswer open_end("HTTP/1.1 200 OK\r\nETag: e\r\nConnection: close\r\n\r\nhalf");
  EXPECT_EQ(open_end.open()->get("k", kMost).status().code(), Code::kUnavailable);
}

TEST(S3Faults, AListThatWasCutOffIsNoList) {
  const OneAnswer server(answer_of("200 OK", "",
                                   "<ListBucketResult><Contents><Key>a</Key><Size>1</Size>"
                                   "</Contents><IsTruncated>false</IsTruncated>"));
  EXPECT_EQ(server.open()->list("").status().code(), Code::kUnavailable);
}

TEST(S3Faults, AnEndpointThatIsNoAddressIsRefusedBeforeAnythingIsAsked) {
  const BucketServer server;
  for (const char* endpoint : {"127.0.0.1:9000", "ftp://h", "HTTP://h", "http://user:secret@h",
                               "http://", "http://h/?x=1", "http://h\n"})
    EXPECT_THAT(server.open("s3://runs", {{"AWS_ENDPOINT_URL", endpoint}})->create("k", "x"),
                FailsWith(Code::kConfig, Advises("AWS_ENDPOINT_URL", "https://HOST")))
        << endpoint;
}

TEST(S3Faults, AKeyWithALineBreakInsideIsRefusedAndOneAtItsEndIsCutOff) {
  const BucketServer server;
  EXPECT_THAT(server.open("s3://runs", {{"AWS_SECRET_ACCESS_KEY", "a\nb"}})->create("k", "x"),
              FailsWith(Code::kBadData, Advises("AWS_SECRET_ACCESS_KEY")));
  EXPECT_EQ(*server.open("s3://runs", {{"AWS_SECRET_ACCESS_KEY", "a/secret+of/the+tests\n"}})
                 ->create("k", "x"),
            Creation::kDone);
}

TEST(S3Faults, TheBucketItselfIsNoObject) {
  const BucketServer server;
  EXPECT_EQ(server.open("s3://runs")->remove("").code(), Code::kUsage);
  EXPECT_EQ(server.open("s3://runs")->put("", "x").code(), Code::kUsage);
}

TEST(S3Faults, OddKeysAreThemselves) {
  const BucketServer server;
  const auto blobs = server.open("s3://runs");
  for (const char* key : {"a//b", "./x", "a/../b", "%41", "a b", "a+b", "ü", "a?b#c&d=e"}) {
    EXPECT_EQ(*blobs->create(key, key), Creation::kDone) << key;
    EXPECT_EQ(*blobs->get(key, kMost), key);
  }
  EXPECT_EQ(blobs->list("")->size(), 8U);
}

TEST(S3Faults, AnAnswerThatIsLostLeavesTheKeyWithOurBytes) {
  const BucketServer server(R"({"lose_answer_every": 1, "only": {"lose_answer_every":
      {"methods": ["PUT"], "key": "k1"}}})");
  S3Options options = server.options();
  options.retries.attempts = 2;
  const std::atomic<bool> never = false;
  const auto blobs = make_s3_blobs("s3://runs", options, never);
  // The second attempt is told that the key is there: the first one made it.
  EXPECT_EQ(*blobs->create("k1", "ours"), Creation::kWasThere);
  EXPECT_EQ(*blobs->get("k1", kMost), "ours");
}

TEST(S3Faults, AConflictSaysNothingAboutWhoWins) {
  const BucketServer server(R"({"conflict_every": 2})");
  const auto blobs = server.open();
  EXPECT_EQ(*blobs->create("a", "x"), Creation::kDone);
  EXPECT_EQ(*blobs->create("b", "x"), Creation::kDone);
  const BucketServer always(R"({"conflict_every": 1})");
  EXPECT_THAT(always.open()->create("c", "x"), FailsWith(Code::kUnavailable, Says("409")));
}

TEST(S3Faults, BytesThatBreakOffAreNoObject) {
  const BucketServer server(R"({"truncate_gets": 1})");
  const auto blobs = server.open();
  ASSERT_TRUE(blobs->put("k", "0123456789").is_ok());
  EXPECT_THAT(blobs->get("k", kMost), FailsWith(Code::kUnavailable, Names("k")));
  std::vector<uint8_t> out(10);
  EXPECT_EQ(blobs->read("k", 0, out).code(), Code::kUnavailable);
}

TEST(S3Faults, AServerWithoutChecksumsGetsNone) {
  const BucketServer server(R"({"refuse_checksums": true})");
  const auto blobs = server.open();
  EXPECT_EQ(*blobs->create("k", "x"), Creation::kDone);
  const auto id = blobs->begin("whole");
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  const auto part = blobs->put_part("whole", *id, 1, "x");
  ASSERT_TRUE(part.is_ok()) << part.status().message();
  EXPECT_TRUE(blobs->complete("whole", *id, {*part}).is_ok());
}

TEST(S3Faults, AGoodAnswerWithAnErrorInsideIsAnError) {
  for (const auto& [faults, is_ok] : {std::pair(R"({"complete_error_in_body": 2})", true),
                                      std::pair(R"({"complete_error_in_body": 1})", false)}) {
    const BucketServer server(faults);
    const auto blobs = server.open();
    for (const char* key : {"a", "b"}) {
      const auto id = blobs->begin(key);
      const auto part = blobs->put_part(key, *id, 1, "x");
      ASSERT_TRUE(part.is_ok());
      EXPECT_EQ(blobs->complete(key, *id, {*part}).is_ok(), is_ok) << faults;
      EXPECT_EQ((*blobs->get(key, kMost)).has_value(), is_ok) << faults;
    }
  }
}

TEST(S3Faults, AnUploadWhoseCompletionWasDoneAndForgottenIsThere) {
  const BucketServer server(R"({"complete_answer_lost": 1, "forget_completions": true})");
  const auto blobs = server.open();
  const auto id = blobs->begin("k");
  const auto part = blobs->put_part("k", *id, 1, "x");
  ASSERT_TRUE(part.is_ok());
  EXPECT_TRUE(blobs->complete("k", *id, {*part}).is_ok());
  EXPECT_EQ(*blobs->get("k", kMost), "x");
}

TEST(S3Faults, WhatAUserHasWrongIsToldWithTheRemedy) {
  const BucketServer server;
  const auto refused = [&](const std::map<std::string, std::string>& changes,
                           const std::string& url = "s3://runs/a") {
    return server.open(url, changes)->create("k", "x").status();
  };
  EXPECT_THAT(refused({{"AWS_SECRET_ACCESS_KEY", "wrong"}}),
              FailsWith(Code::kRefused, Says("SignatureDoesNotMatch"), Advises("credentials")));
  EXPECT_THAT(refused({{"AWS_ACCESS_KEY_ID", "unknown"}}),
              FailsWith(Code::kRefused, Says("InvalidAccessKeyId"), Advises("credentials")));
  EXPECT_THAT(refused({{"AWS_ACCESS_KEY_ID", ""}, {"AWS_SECRET_ACCESS_KEY", ""}}),
              FailsWith(Code::kRefused, Advises("AWS_ACCESS_KEY_ID", "AWS_PROFILE")));
  EXPECT_THAT(refused({{"AWS_REGION", "eu-west-1"}}),
              FailsWith(Code::kRefused, Names("eu-west-1"), Advises("AWS_REGION=us-east-1")));
  EXPECT_THAT(refused({}, "s3://other/a"), FailsWith(Code::kNoInput, Says("NoSuchBucket")));
  EXPECT_THAT(server.open("s3://other/a")->get("k", kMost),
              FailsWith(Code::kNoInput, Says("NoSuchBucket")));
}

TEST(S3Faults, AClockThatIsAnHourOffIsToldByItsMinutes) {
  const BucketServer server;
  S3Options options = server.options();
  options.now = [] { return static_cast<int64_t>(std::time(nullptr)) + 3'630; };
  const std::atomic<bool> never = false;
  EXPECT_THAT(make_s3_blobs("s3://runs", options, never)->create("k", "x"),
              FailsWith(Code::kRefused, Says("60 minutes"), Advises("NTP")));
}

TEST(S3Faults, KeysThatWereRenewedAreTakenWhenTheOldOnesAreRefused) {
  const BucketServer server;
  S3Options options = server.options();
  const auto env = options.env;
  auto reads = std::make_shared<int>(0);
  options.env = [env, reads](const char* name) {
    const bool is_secret = std::string(name) == "AWS_SECRET_ACCESS_KEY";
    return is_secret && ++*reads == 1 ? std::string("old") : env(name);
  };
  const std::atomic<bool> never = false;
  EXPECT_EQ(*make_s3_blobs("s3://runs", options, never)->create("k", "x"), Creation::kDone);
}

TEST(S3Faults, ATemporarySessionSendsItsToken) {
  const BucketServer server("{}", {"--token", "t+/="});
  EXPECT_EQ(*server.open("s3://runs", {{"AWS_SESSION_TOKEN", "t+/="}})->create("k", "x"),
            Creation::kDone);
  EXPECT_THAT(server.open("s3://runs", {{"AWS_SESSION_TOKEN", "old"}})->create("k", "x"),
              FailsWith(Code::kRefused, Advises("expired")));
}

TEST(S3Faults, ListsComeInPages) {
  const BucketServer server("{}", {"--page", "10"});
  const auto blobs = server.open();
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(blobs->put("k" + std::to_string(i), "x").is_ok());
  EXPECT_EQ(blobs->list("")->size(), 25U);
  const auto id = blobs->begin("whole");
  std::vector<Part> parts;
  for (uint32_t i = 1; i <= 12; ++i) {
    const auto part = blobs->put_part("whole", *id, i, "x");
    ASSERT_TRUE(part.is_ok());
    parts.push_back(*part);
  }
  const auto listed = blobs->parts("whole", *id);
  ASSERT_TRUE(listed.is_ok());
  EXPECT_EQ(listed->size(), 12U);
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(blobs->begin("u" + std::to_string(i)).is_ok());
  EXPECT_EQ(blobs->uploads("")->size(), 13U);
  EXPECT_EQ(blobs->uploads("u")->size(), 12U);
}

}  // namespace
}  // namespace lockstep::store
