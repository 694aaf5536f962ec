// HTTP as it is served beyond loopback: over TLS, to who shows the token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/http/http_call.h"
#include "comm/http/http_server.h"
#include "comm/tls/run_token.h"
#include "tests/support/fails_with.h"
#include "tests/unit/rpc/test_support.h"
#include "tests/unit/rpc/tls_support.h"

namespace lockstep::http {
namespace {

class HttpTls : public testing::Test {
 protected:
  void SetUp() override {
    rpc::issue(certificates_, {"node1"});
    identity_ = rpc::identity(certificates_, logger_);
    token_ = *rpc::create_token_file(token_path_);
    start({"127.0.0.1", 0});
  }

  void start(const rpc::Address& address) {
    thread_.call([&] {
      HttpServer::Options options;
      options.address = address;
      options.tls = identity_;
      options.token = *rpc::TokenFile::open(token_path_, logger_);
      options.deadline_ms = kDeadlineMs;
      std::map<std::string, Handler> handlers;
      for (const char* path : {"/healthz", "/readyz", "/metrics", "/sd", "/"})
        handlers[path] = [](const Request&) { return Response{.body = "said\n"}; };
      auto server = HttpServer::start(thread_.loop, options, std::move(handlers), logger_);
      ASSERT_TRUE(server.is_ok()) << server.status().message();
      server_ = std::move(server).value();
      address_ = server_->address();
    });
  }

  void TearDown() override {
    thread_.call([this] { server_.reset(); });
    std::filesystem::remove_all(certificates_);
    std::filesystem::remove(token_path_);
  }

  Result<HttpAnswer> get(const std::string& path, const std::string& token) {
    return http_get(address_, path, 10'000, {identity_->context(), token});
  }
  int status_of(const std::string& path, const std::string& token) {
    const auto answer = get(path, token);
    EXPECT_TRUE(answer.is_ok()) << answer.status().message();
    return answer.is_ok() ? answer->status : 0;
  }

  void expect_refusal(const std::string& reason) {
    const auto lines = logger_.lines.wait_for(1);
    EXPECT_THAT(lines[0], AllOf(Names("127.0.0.1:"), Says(reason)));
    EXPECT_EQ(status_of("/metrics", token_), 200) << "and others are served";
  }

  static constexpr int64_t kDeadlineMs = 1'000;
  const std::string certificates_ = rpc::empty_directory("http-tls");
  const std::string token_path_ = rpc::empty_directory("http-token");
  rpc::MemoryLogger logger_;
  rpc::LoopThread thread_;
  std::shared_ptr<rpc::TlsIdentity> identity_;
  std::string token_;
  rpc::Address address_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTls, WhoShowsTheTokenIsAnswered) {
  const auto answer = get("/metrics", token_);
  ASSERT_TRUE(answer.is_ok()) << answer.status().message();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "said\n");
  EXPECT_TRUE(logger_.lines.now().empty());
}

TEST_F(HttpTls, WithoutTheTokenThereAreOnlyTheProbes) {
  for (const char* path : {"/metrics", "/sd", "/", "/nothing"}) {
    EXPECT_EQ(status_of(path, ""), 401) << path;
    EXPECT_EQ(status_of(path, std::string(64, 'a')), 401) << path;
    EXPECT_EQ(status_of(path, token_ + "0"), 401) << path;
  }
  EXPECT_EQ(status_of("/healthz", ""), 200);
  EXPECT_EQ(status_of("/readyz", ""), 200);
  EXPECT_EQ(status_of("/nothing", token_), 404);
  expect_refusal("needs the token");
}

TEST_F(HttpTls, AReplacedTokenHoldsAtOnce) {
  const std::string after = *rpc::create_token_file(token_path_);
  EXPECT_EQ(status_of("/metrics", after), 200);
  EXPECT_EQ(status_of("/metrics", token_), 200) << "for a while";
}

TEST_F(HttpTls, PlainTextIsRefused) {
  rpc::RawSocket stranger(address_);
  stranger.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(stranger.receive_all().find("said"), std::string::npos);
  expect_refusal("TLS failed");
}

TEST_F(HttpTls, AHandshakeThatDoesNotEndIsCutAtTheDeadline) {
  rpc::RawSocket stranger(address_);
  stranger.send(std::string("\x16\x03\x01\x01\x00", 5));
  stranger.receive_all();
  expect_refusal("TLS failed");
}

TEST_F(HttpTls, TheCertificateMustBeForWhoIsAsked) {
  start({"127.0.0.2", 0});
  const auto answer = get("/healthz", "");
  EXPECT_THAT(answer, FailsWith(Code::kRefused, Says("certificate", "127.0.0.2")));
}

TEST_F(HttpTls, BeyondLoopbackThereIsNoServerWithoutBoth) {
  HttpServer::Options options;
  options.address = {"192.0.2.1", 0};
  const auto start = [&] { return HttpServer::start(thread_.loop, options, {}, logger_).status(); };
  EXPECT_THAT(start().message(), Names("comm.tls"));
  options.tls = identity_;
  EXPECT_THAT(start().message(), Names("comm.tls")) << "no token";
  options.tls = nullptr;
  options.token = token_;
  EXPECT_THAT(start().message(), Names("comm.tls")) << "no certificate";
  options.tls = identity_;
  EXPECT_THAT(start().message(), AllOf(Names("192.0.2.1"), Not(Names("comm.tls"))));
  EXPECT_EQ(http_get({"192.0.2.1", 80}, "/", 1'000).status().code(), Code::kConfig);
}

}  // namespace
}  // namespace lockstep::http
