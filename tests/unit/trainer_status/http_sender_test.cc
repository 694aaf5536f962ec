// One report to a real server on loopback, and everything that server may do to us.
#include "coordinator/trainer_status/http_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>

#include "comm/base/file.h"
#include "comm/http/http_server.h"
#include "tests/support/fails_with.h"
#include "tests/unit/rpc/fixed_server.h"
#include "tests/unit/rpc/test_support.h"
#include "tests/unit/rpc/tls_support.h"

namespace lockstep::trainer {
namespace {

using rpc::FixedServer;

constexpr int64_t kPatienceMs = 10'000;
constexpr char kFine[] = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}";

class TrainerSender : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    target_.is_tls = false;
    target_.path = "/apis/status?x=1";
    target_.token_path = directory_ + "/token";
    target_.authority_path = certificates_ + "/ca.crt";
    write_token("first\n");
  }
  void TearDown() override {
    std::filesystem::remove_all(directory_);
    std::filesystem::remove_all(certificates_);
  }
  void write_token(const std::string& token) {
    ASSERT_TRUE(replace_file(target_.token_path, token, 0644).is_ok());
  }
  Status send_to(const rpc::Address& address, int64_t timeout_ms = kPatienceMs) {
    target_.address = address;
    return send_report(target_, address, "{\"a\":1}", timeout_ms);
  }
  void expect_refusal(const std::string& answer, const std::string& words) {
    FixedServer server(answer);
    const Status status = send_to(server.address);
    EXPECT_THAT(status, FailsWith(Code::kRefused, Names(words))) << answer;
  }

  const std::string directory_ = rpc::empty_directory("trainer-status");
  const std::string certificates_ = rpc::empty_directory("trainer-status-tls");
  Target target_;
};

TEST_F(TrainerSender, PostsTheBodyWithTheToken) {
  FixedServer server(kFine);
  const Status status = send_to(server.address);
  EXPECT_TRUE(status.is_ok()) << status.message();
  const std::string request = server.requests.wait_for(1)[0];
  EXPECT_EQ(request.find("POST /apis/status?x=1 HTTP/1.1\r\nHost: " +
                         rpc::to_string(server.address) + "\r\n"),
            0u)
      << request;
  for (const char* line :
       {"Content-Type: application/json", "Content-Length: 7", "Authorization: Bearer first"})
    EXPECT_NE(request.find("\r\n" + std::string(line) + "\r\n"), std::string::npos) << request;
  EXPECT_TRUE(request.ends_with("\r\n\r\n{\"a\":1}")) << request;
}

TEST_F(TrainerSender, AReplacedTokenHoldsAtOnce) {
  FixedServer server(kFine);
  EXPECT_TRUE(send_to(server.address).is_ok());
  write_token("second");
  EXPECT_TRUE(send_to(server.address).is_ok());
  const auto requests = server.requests.wait_for(2);
  EXPECT_NE(requests[0].find("Bearer first\r\n"), std::string::npos);
  EXPECT_NE(requests[1].find("Bearer second\r\n"), std::string::npos);
}

TEST_F(TrainerSender, ATokenThatIsNoneIsNotSent) {
  FixedServer server(kFine);
  for (const char* bad : {"", "\n", "two words", "a\r\nX-Other: b", "\xff\xfe"}) {
    write_token(bad);
    EXPECT_EQ(send_to(server.address).code(), Code::kConfig) << bad;
  }
  write_token(std::string(kTokenBytes + 1, 'a'));
  EXPECT_FALSE(send_to(server.address).is_ok());
  std::filesystem::remove(target_.token_path);
  EXPECT_EQ(send_to(server.address).code(), Code::kNoInput);
  EXPECT_TRUE(server.requests.now().empty());
}

TEST_F(TrainerSender, WhatTheServerSaysAndWhatToDoIsInTheMessage) {
  expect_refusal("HTTP/1.0 403 Forbidden\r\n\r\n{\"message\":\"Forbidden here\"}",
                 "answers 403 (Forbidden here): use a token of a pod");
  expect_refusal("HTTP/1.1 422 X\r\n\r\n{\"message\":[1]}", "answers 422 ({\"message\":[1]})");
  expect_refusal("HTTP/1.0 404 X\r\n\r\n", "the TrainJob is still there");
  expect_refusal("HTTP/1.0 500 X\r\n\r\n" + std::string(5'000, 'x'), "log of Kubeflow Trainer's");
  expect_refusal("SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP");
  expect_refusal("HTTP/1.0 200 OK\r\n\r\n" + std::string(kAnswerBytes + 1, 'x'), "larger than");
}

TEST_F(TrainerSender, ARedirectIsNotFollowed) {
  FixedServer elsewhere(kFine);
  expect_refusal("HTTP/1.0 307 X\r\nLocation: http://" + rpc::to_string(elsewhere.address) +
                     "/\r\nContent-Length: 0\r\n\r\n",
                 "does not follow redirects");
  EXPECT_TRUE(elsewhere.requests.now().empty());
}

TEST_F(TrainerSender, AServerThatHangsIsLeftAfterTheTimeout) {
  FixedServer server("");
  EXPECT_EQ(send_to(server.address, 200).code(), Code::kTimeout);
}

TEST_F(TrainerSender, InTheClearNothingLeavesThisMachine) {
  EXPECT_EQ(send_to({"192.0.2.1", 80}).code(), Code::kConfig);
}

// The status server of Kubeflow Trainer asks for no certificate of ours; neither does our HTTP.
class TrainerSenderTls : public TrainerSender {
 protected:
  void SetUp() override {
    TrainerSender::SetUp();
    target_.is_tls = true;
    rpc::issue(certificates_, {"status.svc"});
    identity_ = rpc::identity(certificates_, logger_);
    thread_.call([&] {
      http::HttpServer::Options options;
      options.address = {"127.0.0.1", 0};
      options.tls = identity_;
      auto server = http::HttpServer::start(thread_.loop, options, {}, logger_);
      ASSERT_TRUE(server.is_ok()) << server.status().message();
      server_ = std::move(server).value();
    });
  }
  void TearDown() override {
    thread_.call([this] { server_.reset(); });
    std::filesystem::remove_all(other_);
    TrainerSender::TearDown();
  }
  Status send_as(const std::string& host) {
    target_.address = {host, server_->address().port};
    return send_report(target_, server_->address(), "{\"a\":1}", kPatienceMs);
  }
  void expect_message(const Status& status, const std::string& words) {
    EXPECT_THAT(status, FailsWith(Code::kRefused, Names(words)));
  }

  const std::string other_ = rpc::empty_directory("trainer-status-other");
  rpc::MemoryLogger logger_;
  rpc::LoopThread thread_;
  std::shared_ptr<rpc::TlsIdentity> identity_;
  std::unique_ptr<http::HttpServer> server_;
};

TEST_F(TrainerSenderTls, WhoProvesToBeTheHostIsToldWithoutACertificateOfOurs) {
  for (const char* host : {"status.svc", "127.0.0.1"})
    expect_message(send_as(host), " answers 4");  // it serves no POST, which it read
}

TEST_F(TrainerSenderTls, AnotherHostIsNotBelieved) {
  expect_message(send_as("another.svc"), "matches target host name 'another.svc'");
  expect_message(send_as("127.0.0.2"), "matches target host name '127.0.0.2'");
}

TEST_F(TrainerSenderTls, AnotherAuthorityIsNotBelieved) {
  rpc::issue(other_, {"status.svc"});
  target_.authority_path = other_ + "/ca.crt";
  expect_message(send_as("status.svc"), "its certificate is not valid");
  target_.authority_path = certificates_ + "/ca.crt";
  expect_message(send_as("status.svc"), " answers 4");
}

TEST_F(TrainerSenderTls, AnAuthorityThatIsNoneOrNotThereIsNamed) {
  target_.authority_path = target_.token_path;
  EXPECT_EQ(send_as("status.svc").code(), Code::kConfig);
  target_.authority_path = "/nowhere/ca.crt";
  EXPECT_EQ(send_as("status.svc").code(), Code::kNoInput);
}

TEST_F(TrainerSender, TheLoopDoesNotWait) {
  FixedServer hangs("");
  target_.address = hangs.address;
  rpc::LoopThread thread;
  std::unique_ptr<HttpSender> sender;
  std::promise<Status> outcome;
  thread.call([&] {
    sender = std::make_unique<HttpSender>(thread.loop, target_);
    sender->send("{\"a\":1}", 1'000, [&](const Status& status) { outcome.set_value(status); });
  });
  auto future = outcome.get_future();
  hangs.requests.wait_for(1);
  thread.call([] {});  // served while the report is under way
  EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(future.get().code(), Code::kTimeout);
  thread.call([&] { sender.reset(); });
}

TEST_F(TrainerSender, WhoIsGoneIsNotCalled) {
  FixedServer hangs("");
  target_.address = {"localhost", hangs.address.port};
  rpc::LoopThread thread;
  bool is_called = false;
  thread.call([&] {
    HttpSender sender(thread.loop, target_);
    sender.send("{\"a\":1}", 100, [&](const Status&) { is_called = true; });
  });
  thread.call([] {});
  EXPECT_FALSE(is_called);
}

}  // namespace
}  // namespace lockstep::trainer
