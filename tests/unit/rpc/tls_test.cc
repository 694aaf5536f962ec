// Certificates on control connections: who is believed, who is refused and how that is said, and
// files that are replaced while connections go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <thread>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/rpc/client.h"
#include "comm/rpc/server.h"
#include "comm/tls/tls_socket.h"
#include "comm/wire/control.pb.h"
#include "tests/support/fails_with.h"
#include "tests/unit/rpc/test_support.h"
#include "tests/unit/rpc/tls_support.h"

namespace lockstep::rpc {
namespace {

class Tls : public testing::Test {
 protected:
  void SetUp() override {
    issue(ours_);
    server_identity_ = identity(ours_, logger_);
    listen("127.0.0.1");
  }

  void listen(const std::string& host) {
    thread_.call([&] {
      server_.reset();
      server_transport_ = std::make_unique<AsioTransport>(thread_.loop, server_identity_);
      auto server =
          RpcServer::start(*server_transport_, {host, 0}, "token", logger_,
                           {.on_peer = [this](PeerId, const std::string&) { peers_.push("peer"); },
                            .on_message = [](PeerId, wire::Envelope&&) {},
                            .on_lost = [](PeerId, const Status&) {}});
      ASSERT_TRUE(server.is_ok());
      server_ = std::move(server).value();
      address_ = server_->address();
    });
  }

  void TearDown() override {
    thread_.call([this] {
      clients_.clear();
      server_.reset();
    });
    std::filesystem::remove_all(ours_);
    std::filesystem::remove_all(others_);
  }

  // Returns what becomes of a client with these certificates (null: none): "ready", or why not.
  std::string outcome_of(std::shared_ptr<TlsIdentity> tls) {
    Inbox<std::string> events;
    thread_.call([&] {
      transports_.push_back(std::make_unique<AsioTransport>(thread_.loop, std::move(tls)));
      RpcClient::Options options;
      options.address = [this]() -> Result<Address> { return address_; };
      options.token = "token";
      options.give_up_after_ms = 3'000;
      const auto push = [&](const Status& s) {
        obstacle_ = s.obstacle();
        events.push(s.message());
      };
      clients_.push_back(
          std::make_unique<RpcClient>(*transports_.back(), options,
                                      RpcClient::Handlers{.on_ready = [&] { events.push("ready"); },
                                                          .on_message = [](wire::Envelope&&) {},
                                                          .on_lost = push,
                                                          .on_failed = push,
                                                          .on_distrust = push}));
    });
    std::string first = events.wait_for(1)[0];
    thread_.call([this] { clients_.pop_back(); });
    return first;
  }

  // Expects "ready" once the server has looked at its files again, at most once a second.
  void expect_ready_soon() {
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    std::string outcome;
    while (outcome != "ready" && std::chrono::steady_clock::now() < deadline)
      outcome = outcome_of(identity(ours_, logger_));
    EXPECT_EQ(outcome, "ready");
    bool is_said = false;
    for (const std::string& line : logger_.lines.now())
      is_said = is_said || line.find(ours_) != std::string::npos;
    EXPECT_TRUE(is_said);
  }

  // Returns a certificate of our authority that was valid when it was read, and is no more.
  std::shared_ptr<TlsIdentity> expired() {
    std::filesystem::copy(ours_, others_);
    issue(others_, {}, 2);
    auto expiring = identity(others_, logger_);
    // OpenSSL asks this clock, which lags the clock of expiry_seconds() by some milliseconds.
    while (std::time(nullptr) <= expiring->context()->expires_s())
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return expiring;
  }

  void expect_refusal(const std::string& reason) {
    const auto lines = logger_.lines.wait_for(1);
    EXPECT_THAT(lines[0], AllOf(Names("127.0.0.1:"), Says(reason)));
    EXPECT_TRUE(peers_.now().empty());
  }

  const std::string ours_ = empty_directory("tls-ours");
  const std::string others_ = empty_directory("tls-others");
  MemoryLogger logger_;
  Inbox<std::string> peers_;
  Obstacle obstacle_ = Obstacle::kNone;  // of the last outcome
  LoopThread thread_;
  std::shared_ptr<TlsIdentity> server_identity_;
  std::unique_ptr<AsioTransport> server_transport_;
  std::vector<std::unique_ptr<AsioTransport>> transports_;
  std::vector<std::unique_ptr<RpcClient>> clients_;
  Address address_;
  std::unique_ptr<RpcServer> server_;
};

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Tls, WhoHasACertificateOfTheAuthorityIsLetIn) {
  EXPECT_EQ(outcome_of(identity(ours_, logger_)), "ready");
  EXPECT_EQ(peers_.wait_for(1).size(), 1u);
  EXPECT_TRUE(logger_.lines.now().empty());
}

TEST_F(Tls, NeitherEndBelievesACertificateOfAnotherAuthority) {
  issue(others_);
  expect_says(outcome_of(identity(others_, logger_)), "its certificate is not valid");
  EXPECT_EQ(obstacle_, Obstacle::kCertificate);
  expect_refusal("it rejected our TLS handshake");
}

// The caller believes every server, and has nothing to show that the server believes.
TEST_F(Tls, ACallerWithACertificateOfAnotherAuthorityIsRefusedThoughItBelievesTheServer) {
  issue(others_);
  std::filesystem::copy(ours_ + "/ca.crt", others_ + "/believed.crt");
  const auto theirs = read_file(others_ + "/ca.crt", 1 << 20);
  const auto believed = read_file(others_ + "/believed.crt", 1 << 20);
  std::ofstream(others_ + "/ca.crt") << *theirs << *believed;
  expect_says(outcome_of(identity(others_, logger_)), "it rejected our TLS handshake");
  expect_refusal("its certificate is not valid");
}

TEST_F(Tls, PlainTextIsRefusedOnATlsPort) {
  EXPECT_NE(outcome_of(nullptr), "ready");
  expect_refusal("it does not speak TLS 1.3");
}

TEST_F(Tls, AServerInTheClearIsNotBelieved) {
  server_identity_ = nullptr;
  listen("127.0.0.1");
  expect_says(outcome_of(identity(ours_, logger_)), "it does not speak TLS 1.3");
}

TEST_F(Tls, ACertificateForAnotherHostIsNotBelieved) {
  listen("127.0.0.2");  // our certificate says 127.0.0.1
  expect_says(outcome_of(identity(ours_, logger_)), "IP address mismatch");
  issue(ours_, {"127.0.0.2"});
  expect_ready_soon();
}

TEST_F(Tls, AnExpiredCallerIsRefused) {
  expect_says(outcome_of(expired()), "it rejected our TLS handshake");
  expect_refusal("certificate has expired");
}

TEST_F(Tls, AnExpiredServerIsNotBelieved) {
  server_identity_ = expired();
  listen("127.0.0.1");
  expect_says(outcome_of(identity(ours_, logger_)), "certificate has expired");
}

TEST_F(Tls, OneThatNeverFinishesTheHandshakeIsClosedAtTheDeadline) {
  RawSocket stranger(address_);
  stranger.send(std::string("\x16\x03\x01\x01\x00", 5));  // a ClientHello is announced
  stranger.receive_all();
  expect_refusal("did not prove the token within 5000 ms");
}

TEST_F(Tls, FilesThatWereReplacedAreUsedForTheNextConnection) {
  const auto before = server_identity_->context();
  std::filesystem::remove_all(ours_);
  issue(ours_);  // another authority
  expect_ready_soon();
  EXPECT_NE(server_identity_->context(), before);
}

TEST_F(Tls, FilesThatCannotBeUsedLeaveTheOldOnesAndAreOneLine) {
  const auto client = identity(ours_, logger_);
  std::ofstream(ours_ + "/tls.crt") << "rubbish";
  EXPECT_EQ(outcome_of(client), "ready");
  EXPECT_EQ(outcome_of(client), "ready");
  const auto lines = logger_.lines.wait_for(2);
  ASSERT_EQ(lines.size(), 2u) << "one of each identity";
  for (const std::string& line : lines) expect_says(line, "keeping the old certificate");
}

TEST_F(Tls, AKeyThatOthersMayReadIsRefusedWithTheCommandThatMendsIt) {
  for (const mode_t mode : {0640, 0604, 0700}) {
    ::chmod((ours_ + "/tls.key").c_str(), mode);
    const auto loaded = TlsContext::load(ours_);
    EXPECT_EQ(loaded.status().code(), Code::kConfig) << std::oct << mode;
    expect_says(loaded.status().message(), "chmod 600");
  }
}

TEST_F(Tls, FilesThatDoNotBelongTogetherAreRefusedByName) {
  issue(others_);
  const auto with = [&](const std::string& name) {
    std::filesystem::remove_all(ours_);
    issue(ours_);
    std::filesystem::copy(others_ + name, ours_ + name,
                          std::filesystem::copy_options::overwrite_existing);
    return TlsContext::load(ours_).status();
  };
  expect_says(with("/ca.crt").message(), "tls.crt does not verify against");
  expect_says(with("/tls.key").message(), "tls.key is not the key of");
  EXPECT_EQ(with("/tls.crt").code(), Code::kConfig);
  std::filesystem::remove(ours_ + "/ca.crt");
  EXPECT_EQ(TlsContext::load(ours_).status().code(), Code::kNoInput);
}

TEST(Certificates, AreForTheHostsOfTheOnesBeforeToo) {
  const std::string directory = empty_directory("tls-certs");
  issue(directory, {"10.0.0.1", "node1"});
  const auto authority = read_file(directory + "/ca.crt", 1 << 20);
  issue(directory, {"fd00:1::2"}, 10 * kDay);
  const auto loaded = TlsContext::load(directory);
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  for (const char* host : {"localhost", "127.0.0.1", "::1", "10.0.0.1", "node1", "fd00:1::2"})
    EXPECT_TRUE((*loaded)->is_for(host)) << host;
  EXPECT_FALSE((*loaded)->is_for("10.0.0.2"));
  EXPECT_FALSE((*loaded)->is_for("node2"));
  EXPECT_EQ(*read_file(directory + "/ca.crt", 1 << 20), *authority);
  struct stat info;
  for (const char* key : {"/ca.key", "/tls.key"}) {
    ASSERT_EQ(::stat((directory + key).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << key;
  }
  for (const char* odd : {"", "a b", "a,email:x", "[::1]", "*"})
    EXPECT_EQ(issue_certificate({directory, {odd}, kDay}).status().code(), Code::kUsage) << odd;
  std::filesystem::remove(directory + "/ca.key");
  EXPECT_EQ(issue_certificate({directory, {}, kDay}).status().code(), Code::kConfig);
  std::filesystem::remove_all(directory);
}

// Two ends in this thread: what one wants, the other one does.
void carry(TlsSocket& from, TlsSocket& to, size_t bytes) {
  const std::string sent(bytes, 'x');
  std::string received(bytes, ' ');
  size_t out = 0;
  for (size_t in = 0; in < bytes;) {
    if (out < bytes) {
      const IoResult wrote = from.write(sent.data() + out, bytes - out);
      ASSERT_NE(wrote.state, IoResult::State::kBroken) << wrote.why.message();
      out += wrote.bytes;
    }
    const IoResult read = to.read(received.data() + in, bytes - in);
    ASSERT_NE(read.state, IoResult::State::kBroken) << read.why.message();
    in += read.bytes;
  }
  EXPECT_EQ(received, sent);
}

TEST(TlsSocket, KeysAreReplacedBeforeTheyHaveProtectedTooMuch) {
  const auto logger = null_logger();
  const std::string directory = empty_directory("keys");
  issue(directory);
  const auto context = identity(directory, *logger)->context();
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  {
    const auto called = TlsSocket::accept(context, ends[0]);
    const auto caller = TlsSocket::connect_to_any(context, ends[1]);
    caller->set_key_bytes(100'000);
    carry(*caller, *called, 1'000'000);
    EXPECT_GE(caller->key_updates(), 8u);
    EXPECT_EQ(called->key_updates(), 0u) << "who only reads renews nothing";
    carry(*called, *caller, 1'000'000);
    EXPECT_EQ(caller->binding(), called->binding());
  }
  ::close(ends[0]);
  ::close(ends[1]);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace lockstep::rpc
