// Tests what the client makes of servers that answer in their own way, or not as a server should.
#include "comm/http/http_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/http/http_transfer.h"
#include "tests/support/fails_with.h"
#include "tests/unit/rpc/fixed_server.h"

namespace lockstep::http {
namespace {

using rpc::FixedServer;

constexpr int64_t kPatienceMs = 30'000;
constexpr size_t kMostBytes = 100;
constexpr char kFine[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

Result<HttpAnswer> ask(const FixedServer& server, const Access& access = {}) {
  return http_get(server.address, "/x?a=1&b", kPatienceMs, access, kMostBytes);
}

TEST(HttpCall, AsksForThePathAtTheHostAndShowsTheToken) {
  FixedServer server(kFine);
  EXPECT_TRUE(ask(server, {.token = "secret"}).is_ok());
  const std::string request = server.requests.wait_for(1)[0];
  EXPECT_EQ(
      request.find("GET /x?a=1&b HTTP/1.1\r\nHost: " + rpc::to_string(server.address) + "\r\n"), 0u)
      << request;
  EXPECT_THAT(request, testing::HasSubstr("\r\nAuthorization: Bearer secret\r\n"));
}

TEST(HttpCall, IPv6IsAskedInBrackets) {
  FixedServer server(kFine, "::1");
  const auto answer = ask(server);
  ASSERT_TRUE(answer.is_ok()) << answer.status().message();
  EXPECT_EQ(answer->body, "hello");
  EXPECT_THAT(server.requests.wait_for(1)[0],
              testing::HasSubstr("\r\nHost: " + rpc::to_string(server.address) + "\r\n"));
}

TEST(HttpCall, ABodyIsTheSameHoweverItsLengthIsSaid) {
  for (const char* answer : {kFine, "HTTP/1.0 200 OK\r\n\r\nhello",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                             "chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"}) {
    FixedServer server(answer);
    const auto got = ask(server);
    ASSERT_TRUE(got.is_ok()) << answer << got.status().message();
    EXPECT_EQ(got->status, 200);
    EXPECT_EQ(got->body, "hello");
  }
}

TEST(HttpCall, CutShortIsAnError) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"}) {
    FixedServer server(answer);
    EXPECT_EQ(ask(server).status().code(), Code::kUnavailable) << answer;
  }
}

TEST(HttpCall, WhatIsNoHttpOrTooLargeIsRefusedByName) {
  const auto outcome = [](const std::string& answer) {
    FixedServer server(answer);
    const Status status = ask(server).status();
    EXPECT_THAT(status.message(), Names(rpc::to_string(server.address)));
    return status;
  };
  for (const char* answer : {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 abc x\r\n\r\n",
                             "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"})
    EXPECT_THAT(outcome(answer), FailsWith(Code::kRefused, Says("does not speak HTTP"))) << answer;
  const std::string fine = "HTTP/1.1 200 OK\r\n";
  EXPECT_THAT(outcome(fine + "\r\n" + std::string(kMostBytes + 1, 'x')),
              FailsWith(Code::kRefused, Says("larger than", std::to_string(kMostBytes))));
  std::string lines;
  while (lines.size() <= limits::kHttpAllHeaderBytes)
    lines += "X: " + std::string(1'000, 'x') + "\r\n";
  EXPECT_THAT(outcome(fine + lines + "\r\n"), FailsWith(Code::kRefused, Says("header", "larger")));
}

TEST(HttpCall, ARedirectIsAResultAndNotFollowed) {
  FixedServer elsewhere(kFine);
  FixedServer server("HTTP/1.1 307 X\r\nContent-Length: 0\r\nLocation: http://" +
                     rpc::to_string(elsewhere.address) + "/\r\n\r\n");
  const auto answer = ask(server);
  ASSERT_TRUE(answer.is_ok()) << answer.status().message();
  EXPECT_EQ(answer->status, 307);
  EXPECT_TRUE(elsewhere.requests.now().empty());
}

TEST(HttpCall, NoProxyOfTheEnvironmentHearsOfIt) {
  FixedServer proxy(kFine);
  FixedServer server(kFine);
  ::setenv("http_proxy", ("http://" + rpc::to_string(proxy.address)).c_str(), 1);
  EXPECT_TRUE(ask(server).is_ok());
  ::unsetenv("http_proxy");
  EXPECT_EQ(server.requests.now().size(), 1u);
  EXPECT_TRUE(proxy.requests.now().empty());
}

TEST(HttpCall, WhereNobodyListensTheReasonIsTold) {
  rpc::Address address;
  {
    const FixedServer server(kFine);
    address = server.address;
  }
  EXPECT_THAT(http_get(address, "/", kPatienceMs),
              FailsWith(Code::kUnavailable,
                        AllOf(Names(rpc::to_string(address)), Says("Connection refused"))));
}

}  // namespace
}  // namespace lockstep::http
