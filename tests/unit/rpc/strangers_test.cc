// Strangers at the door, with real sockets: each causes one clear log line and harms no peer.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "comm/base/limits.h"
#include "comm/rpc/auth.h"
#include "comm/rpc/client.h"
#include "comm/rpc/server.h"
#include "comm/wire/control.pb.h"
#include "test_support.h"
#include "tests/support/fails_with.h"

namespace lockstep::rpc {
namespace {

class Strangers : public testing::Test {
 protected:
  void SetUp() override {
    thread_.call([this] {
      auto server = RpcServer::start(
          transport_, {"127.0.0.1", 0}, "token", logger_,
          {.on_peer = [this](PeerId, const std::string&) { ++peers_; },
           .on_message = [this](PeerId id, wire::Envelope&& e) { server_->send(id, e); },
           .on_lost = [](PeerId, const Status&) {}});
      ASSERT_TRUE(server.is_ok());
      server_ = std::move(server).value();
      address_ = server_->address();
      RpcClient::Options options;
      options.address = [this]() -> Result<Address> { return address_; };
      options.token = "token";
      friend_ = std::make_unique<RpcClient>(
          transport_, options,
          RpcClient::Handlers{
              .on_ready = [this] { events_.push("ready"); },
              .on_message = [this](wire::Envelope&& e) { echoes_.push(e.heartbeat().step()); },
              .on_lost = [this](const Status& s) { events_.push("lost: " + s.message()); },
              .on_failed = [this](const Status& s) { events_.push("failed: " + s.message()); }});
    });
    events_.wait_for(1);
  }

  void TearDown() override {
    thread_.call([this] {
      friend_.reset();
      server_.reset();
    });
  }

  // The friend's line was never lost and still carries messages.
  void expect_no_harm() {
    const size_t before = echoes_.now().size();
    thread_.call([&] {
      wire::Envelope envelope;
      envelope.mutable_heartbeat()->set_step(before);
      EXPECT_TRUE(friend_->send(envelope).is_ok());
      EXPECT_EQ(peers_, 1);
    });
    echoes_.wait_for(before + 1);
    EXPECT_EQ(events_.now(), std::vector<std::string>{"ready"});
  }

  void expect_one_line(const std::string& reason) {
    const auto lines = logger_.lines.wait_for(1);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines[0], AllOf(Names("127.0.0.1:"), Says(reason)));
  }

  MemoryLogger logger_;
  Inbox<std::string> events_;
  Inbox<uint64_t> echoes_;
  LoopThread thread_;
  AsioTransport transport_{thread_.loop};
  Address address_;
  int peers_ = 0;  // on the loop's thread
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcClient> friend_;
};

TEST_F(Strangers, GarbageIsRefused) {
  RawSocket stranger(address_);
  stranger.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  stranger.receive_all();
  expect_one_line("stream");
  expect_no_harm();
}

TEST_F(Strangers, AHugeFrameLengthIsRefusedFromItsHeader) {
  RawSocket stranger(address_);
  stranger.send(std::string(wire::kPreamble) + std::string("\xff\xff\xff\xff\x02", 5));
  stranger.receive_all();
  expect_one_line("4294967295 bytes");
  expect_no_harm();
}

TEST_F(Strangers, AWrongTokenIsRefusedAndTold) {
  Inbox<std::string> failures;
  std::unique_ptr<RpcClient> stranger;
  thread_.call([&] {
    RpcClient::Options options;
    options.address = [this]() -> Result<Address> { return address_; };
    options.token = "guess";
    options.refusal_is_final = true;
    stranger = std::make_unique<RpcClient>(
        transport_, options,
        RpcClient::Handlers{.on_ready = [&] { failures.push("ready"); },
                            .on_message = [](wire::Envelope&&) {},
                            .on_lost = [&](const Status&) { failures.push("lost"); },
                            .on_failed = [&](const Status& s) { failures.push(s.message()); }});
  });
  EXPECT_THAT(failures.wait_for(1)[0], Says("token"));
  thread_.call([&] { stranger.reset(); });
  expect_one_line("token");
  expect_no_harm();
}

TEST_F(Strangers, OneThatNeverSpeaksIsClosedAtTheDeadline) {
  RawSocket stranger(address_);
  expect_no_harm();
  stranger.receive_all();
  expect_one_line("did not prove the token within 5000 ms");
  expect_no_harm();
}

TEST_F(Strangers, OneThatLeavesAtOnceIsOneLine) {
  { RawSocket stranger(address_); }
  logger_.lines.wait_for(1);
  expect_no_harm();
  EXPECT_EQ(logger_.lines.now().size(), 1u);
}

TEST_F(Strangers, AThousandOfThemLeaveTheFriendAlone) {
  for (int i = 0; i < 1000; ++i) {
    RawSocket stranger(address_);
    stranger.send("garbage garbage");
    if (i % 100 == 0) expect_no_harm();
  }
  expect_no_harm();
  EXPECT_LE(logger_.lines.now().size(), static_cast<size_t>(limits::kRefusalLogLines) + 1);
}

// Looked at from the loop's thread, which opens and closes them.
TEST_F(Strangers, SocketsAreCloseOnExec) {
  RawSocket ours(address_);
  int open = 0;
  thread_.call([&open] {
    for (int fd = 3; fd < 256; ++fd) {
      const int flags = ::fcntl(fd, F_GETFD);
      if (flags < 0) continue;
      struct stat info;
      if (::fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) continue;
      ++open;
      EXPECT_TRUE(flags & FD_CLOEXEC) << fd;
    }
  });
  EXPECT_GE(open, 3);
}

}  // namespace
}  // namespace lockstep::rpc
