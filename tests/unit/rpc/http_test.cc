#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/http/http_call.h"
#include "comm/http/http_server.h"
#include "test_support.h"
#include "tests/support/fails_with.h"

namespace lockstep::http {
namespace {

using rpc::RawSocket;

class Http : public testing::Test {
 protected:
  void start(int64_t deadline_ms = limits::kHttpDeadlineMs) {
    thread_.call([&] {
      HttpServer::Options options;
      options.allowed_hosts = {"trainer"};
      options.deadline_ms = deadline_ms;
      std::map<std::string, Handler> handlers;
      handlers["/healthz"] = [](const Request&) { return Response{.body = "ok\n"}; };
      handlers["/echo"] = [](const Request& request) {
        return Response{.status = 202,
                        .content_type = "text/echo",
                        .body = std::string(request.path) + "|" + std::string(request.query)};
      };
      auto server = HttpServer::start(thread_.loop, options, std::move(handlers), logger_);
      ASSERT_TRUE(server.is_ok()) << server.status().message();
      server_ = std::move(server).value();
      address_ = server_->address();
    });
  }
  void SetUp() override { start(); }
  void TearDown() override {
    thread_.call([this] { server_.reset(); });
  }

  // Sends `request` and gives the whole answer; the server must end the connection.
  std::string ask(const std::string& request) {
    RawSocket socket(address_);
    socket.send(request);
    return socket.receive_all();
  }
  // The status of a GET with these header lines.
  int status_of(const std::string& first_line, const std::string& headers) {
    const std::string answer = ask(first_line + "\r\n" + headers + "Connection: close\r\n\r\n");
    return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
  }
  void expect_alive() {
    const auto answer = http_get(address_, "/healthz", 10'000);
    ASSERT_TRUE(answer.is_ok()) << answer.status().message();
    EXPECT_EQ(answer->body, "ok\n");
  }

  rpc::MemoryLogger logger_;
  rpc::LoopThread thread_;
  rpc::Address address_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Http, AHandlerSeesPathAndQueryAndItsAnswerArrives) {
  EXPECT_NE(address_.port, 0);
  const auto answer = http_get(address_, "/echo?a=1&b", 10'000);
  ASSERT_TRUE(answer.is_ok());
  EXPECT_EQ(answer->status, 202);
  EXPECT_EQ(answer->body, "/echo|a=1&b");
  EXPECT_NE(
      ask("GET /echo HTTP/1.0\r\nHost: localhost\r\n\r\n").find("Content-Type: text/echo\r\n"),
      std::string::npos);
}

TEST_F(Http, AnUnknownPathIs404) {
  EXPECT_EQ(http_get(address_, "/nothing", 10'000)->status, 404);
}

TEST_F(Http, OtherMethodsAre405WithTheAllowedOnes) {
  const std::string answer =
      ask("POST /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(answer.find("HTTP/1.1 405 "), 0u);
  EXPECT_NE(answer.find("Allow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_EQ(status_of("DELETE / HTTP/1.1", "Host: localhost\r\n"), 405);
}

TEST_F(Http, HeadHasTheLengthButNoBody) {
  const std::string answer =
      ask("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 3\r\n"), std::string::npos);
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST_F(Http, OnlyAllowedHostsAreAnswered) {
  for (const char* host : {"localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:9", "[::1]:80",
                           "trainer", "trainer:8080"})
    EXPECT_EQ(status_of("GET /healthz HTTP/1.1", std::string("Host: ") + host + "\r\n"), 200)
        << host;
  for (const char* host : {"evil.example", "10.0.0.1", "localhost.evil.example", "", "[", "[]"})
    EXPECT_EQ(status_of("GET /healthz HTTP/1.1", std::string("Host: ") + host + "\r\n"), 421)
        << host;
  EXPECT_EQ(status_of("GET /healthz HTTP/1.1", ""), 421);
  EXPECT_EQ(status_of("GET /healthz HTTP/1.1", "Host: localhost\r\nHost: evil.example\r\n"), 400);
}

TEST_F(Http, AConnectionServesManyRequestsAlsoPipelined) {
  const std::string request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawSocket socket(address_);
  for (int i = 0; i < 3; ++i) {
    socket.send(request);
    EXPECT_EQ(socket.receive_until("ok\n").find("HTTP/1.1 200 OK"), 0u);
  }
  socket.send(request + request);
  socket.receive_until("ok\n");
  socket.receive_until("ok\n");
}

TEST_F(Http, GarbageIs400AndHarmsNobody) {
  EXPECT_EQ(ask("\x16\x03\x01 garbage\r\n\r\n").find("HTTP/1.1 400 "), 0u);
  EXPECT_EQ(ask(std::string(100, '\0')).find("HTTP/1.1 400 "), 0u);
  expect_alive();
}

TEST_F(Http, LargeHeadersAndBodiesAreRefused) {
  const std::string start = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(ask(start + "X: " + std::string(20'000, 'x') + "\r\n\r\n").find("HTTP/1.1 431 "), 0u);
  EXPECT_EQ(
      ask(start + "Content-Length: 1000000\r\n\r\n" + std::string(1000, 'x')).find("HTTP/1.1 413 "),
      0u);
  expect_alive();
}

TEST_F(Http, ASlowRequestIsCutAtTheDeadlineWhileOthersAreServed) {
  TearDown();
  start(200);
  RawSocket silent(address_);
  RawSocket slow(address_);
  slow.send("GET /healthz HTTP/1.1\r\nHost: loc");
  expect_alive();
  EXPECT_EQ(slow.receive_all(), "");
  EXPECT_EQ(silent.receive_all(), "");
  expect_alive();
  for (const std::string& line : logger_.lines.wait_for(2)) EXPECT_THAT(line, Says("200 ms"));
}

TEST_F(Http, WhoIsRefusedIsALineInTheLog) {
  EXPECT_EQ(status_of("GET /healthz HTTP/1.1", "Host: evil.example\r\n"), 421);
  const auto lines = logger_.lines.wait_for(1);
  EXPECT_THAT(lines[0], AllOf(Names("127.0.0.1:"), Says("Host")));
}

TEST_F(Http, AByteAtATimeDoesNotMoveTheDeadline) {
  TearDown();
  start(200);
  RawSocket slow(address_);
  slow.send("GET /healthz HTTP/1.1\r\n");
  // Each byte waits for a whole request of another client; the loop ends only by being cut.
  while (slow.send("x")) expect_alive();
  EXPECT_EQ(slow.receive_all(), "");
}

// A crowd that asks for nothing, or begins to, keeps no other client out.
TEST_F(Http, AmongTooManyConnectionsTheOldestWithoutARequestMakesRoom) {
  std::vector<std::unique_ptr<RawSocket>> sockets;
  for (size_t i = 0; i < limits::kHttpConnections; ++i) {
    sockets.push_back(std::make_unique<RawSocket>(address_));
    sockets.back()->send("GET /healthz HTTP/1.1\r\n");
  }
  for (int i = 0; i < 3; ++i) expect_alive();
  EXPECT_EQ(sockets[0]->receive_all(), "");
  EXPECT_THAT(logger_.lines.wait_for(1)[0], AllOf(Names("127.0.0.1:"), Says("128", "room")));
  sockets.back()->send("Host: localhost\r\n\r\n");
  sockets.back()->receive_until("ok\n");
}

TEST_F(Http, ATakenPortIsOneSentenceWithWhatToDo) {
  HttpServer::Options options;
  options.address = address_;
  const auto second = HttpServer::start(thread_.loop, options, {}, logger_);
  EXPECT_EQ(second.status(),
            Status(Code::kConfig, "cannot listen on " + rpc::to_string(address_) +
                                      ": the port is taken by another program; choose another "
                                      "port, or 0 for any free one"));
}

TEST_F(Http, OtherMachinesAreNotServedInTheClear) {
  HttpServer::Options options;
  options.address = {"0.0.0.0", 0};
  EXPECT_EQ(HttpServer::start(thread_.loop, options, {}, logger_).status().code(), Code::kConfig);
}

TEST_F(Http, ADestroyedServerEndsItsConnections) {
  RawSocket socket(address_);
  socket.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  socket.receive_until("ok\n");
  thread_.call([this] { server_.reset(); });
  EXPECT_EQ(socket.receive_all(), "");
  EXPECT_EQ(http_get(address_, "/healthz", 10'000).status().code(), Code::kUnavailable);
}

TEST_F(Http, GetTimesOutOnAServerThatDoesNotAnswer) {
  std::promise<void> hold;
  thread_.loop.post([&] { hold.get_future().wait(); });
  const auto answer = http_get(address_, "/healthz", 100);
  hold.set_value();
  EXPECT_EQ(answer.status().code(), Code::kTimeout);
}

}  // namespace
}  // namespace lockstep::http
