// A data connection under TLS: who is believed, and that all bytes arrive through sockets that take
// few at a time.
#include "comm/link/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>

#include "comm/base/prng.h"
#include "comm/collectives/host/rank_handshake.h"
#include "comm/link/handshake.h"
#include "tests/support/fails_with.h"
#include "tests/unit/collectives/world.h"

namespace lockstep {
namespace {

using host::kBetweenRanks;
using link::Deadline;
using link::Hello;
using link::Stream;
using testing::certified;
using testing::kConnectMs;

std::shared_ptr<rpc::TlsIdentity> of_another_authority() {
  static const auto logger = null_logger();
  const std::string directory = rpc::empty_directory("another");
  rpc::issue(directory);
  auto made = rpc::identity(directory, *logger);
  std::filesystem::remove_all(directory);
  return made;
}

struct Ends {
  Descriptor caller;
  Descriptor called;
};

Ends connected() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const int little = 4096;
  for (const int end : ends) setsockopt(end, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Deadline soon() {
  return Deadline::after(kConnectMs);
}

std::string noise(size_t bytes, uint64_t seed) {
  Prng prng(seed);
  std::string text(bytes, ' ');
  for (char& c : text) c = static_cast<char>(prng.below(256));
  return text;
}

// All of `parts`, waiting only when nothing more goes out, as TcpLink does it.
Status send_parts(Stream& stream, const std::vector<std::string>& parts) {
  std::vector<iovec> left;
  for (const std::string& part : parts)
    left.push_back({const_cast<char*>(part.data()), part.size()});
  while (!left.empty()) {
    rpc::IoResult sent = stream.try_send(left.data(), left.size());
    if (sent.state == rpc::IoResult::State::kBroken) return sent.why;
    if (sent.bytes == 0)
      LOCKSTEP_RETURN_IF_ERROR(link::wait_until_ready(stream.fd(), POLLOUT, soon()));
    while (!left.empty() && sent.bytes >= left.front().iov_len) {
      sent.bytes -= left.front().iov_len;
      left.erase(left.begin());
    }
    if (left.empty()) break;
    left.front().iov_base = static_cast<char*>(left.front().iov_base) + sent.bytes;
    left.front().iov_len -= sent.bytes;
  }
  return Status::ok();
}

class EveryStream : public ::testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<const rpc::TlsContext> tls() const {
    return GetParam() ? certified()->context() : nullptr;
  }
};

INSTANTIATE_TEST_SUITE_P(Streams, EveryStream, ::testing::Bool(),
                         [](const auto& tls) { return tls.param ? "tls" : "clear"; });

// Both directions at once, parts of all sizes, through buffers of a few KiB.
TEST_P(EveryStream, AllPartsArriveInTheirOrderBothWaysAtOnce) {
  Ends ends = connected();
  Stream a = Stream::called(std::move(ends.caller), tls());
  Stream b = Stream::accepted(std::move(ends.called), tls());
  const std::vector<size_t> sizes = {1, 72, 16'383, 16'384, 16'385, 5, 0, 300'000, 7, 40'000, 64};
  std::vector<std::string> parts;
  std::string whole;
  for (size_t round = 0; round < 4; ++round)
    for (const size_t size : sizes) parts.push_back(noise(size, parts.size()));
  for (const std::string& part : parts) whole += part;
  const auto receive = [&whole](Stream& stream) {
    std::string text(whole.size(), ' ');
    const Status status = stream.receive(text.data(), text.size(), soon());
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_TRUE(text == whole);
  };
  // The handshake first: who only sends waits for room, and never looks at what comes.
  auto hello = std::async(std::launch::async, [&] { return b.send("b", 1, soon()); });
  char byte = 0;
  ASSERT_TRUE(a.receive(&byte, 1, soon()).is_ok());
  ASSERT_TRUE(hello.get().is_ok());
  std::vector<std::future<void>> work;
  for (Stream* stream : {&a, &b}) {
    work.push_back(std::async(std::launch::async, [&parts, stream] {
      const Status status = send_parts(*stream, parts);
      EXPECT_TRUE(status.is_ok()) << status.message();
    }));
    work.push_back(std::async(std::launch::async, [&receive, stream] { receive(*stream); }));
  }
  for (auto& one : work) one.get();
}

TEST_P(EveryStream, AnEndIsAnErrorAndNotAWait) {
  Ends ends = connected();
  Stream a = Stream::called(std::move(ends.caller), tls());
  ends.called.reset();
  char byte = 0;
  EXPECT_EQ(a.receive(&byte, 1, soon()).code(), Code::kUnavailable);
}

TEST(TlsStream, ACertificateOfAnotherAuthorityIsRefusedByBothEnds) {
  Ends ends = connected();
  Stream a = Stream::called(std::move(ends.caller), of_another_authority()->context());
  Stream b = Stream::accepted(std::move(ends.called), certified()->context());
  char byte = 0;
  auto called = std::async(std::launch::async, [&] { return b.receive(&byte, 1, soon()); });
  const Status caller = a.send("a", 1, soon());
  EXPECT_THAT(caller, FailsWith(Code::kRefused, Says("certificate")));
  EXPECT_EQ(called.get().code(), Code::kRefused);
}

TEST(TlsStream, WhoSpeaksInTheClearIsRefused) {
  Ends ends = connected();
  Stream a(std::move(ends.caller));
  Stream b = Stream::accepted(std::move(ends.called), certified()->context());
  const Hello hello = new_hello(kBetweenRanks);
  ASSERT_TRUE(a.send(&hello, sizeof hello, soon()).is_ok());
  char byte = 0;
  EXPECT_EQ(b.receive(&byte, 1, soon()).code(), Code::kRefused);
}

std::unique_ptr<HostContext> context_with(std::shared_ptr<rpc::TlsIdentity> tls) {
  auto made = HostContext::create({.token = "secret", .tls = std::move(tls), .force_tcp = true});
  EXPECT_TRUE(made.is_ok());
  return std::move(*made);
}

// Returns what rank 1, which is `caller`, hears when it calls rank 0.
Status outcome_of(std::shared_ptr<rpc::TlsIdentity> caller) {
  const auto ours = context_with(certified());
  const auto other = context_with(std::move(caller));
  const std::vector<PeerAddress> peers = {{100, ours->address()}, {101, other->address()}};
  auto waiting = std::async(std::launch::async,
                            [&] { return ours->connect(1, 0, 100, peers, 500).status().code(); });
  Status status = other->connect(1, 1, 101, peers, 2'000).status();
  EXPECT_EQ(waiting.get(), Code::kTimeout);
  return status;
}

TEST(TlsStream, OnlyWhoHasACertificateOfTheRunJoinsAGeneration) {
  EXPECT_EQ(outcome_of(of_another_authority()).code(), Code::kRefused);
  const Status clear = outcome_of(nullptr);
  EXPECT_FALSE(clear.is_ok());
}

// Between caller and called, with a certificate of the authority but without the token.
class Middle {
 public:
  Middle(Descriptor to_caller, Descriptor to_called)
      : to_caller_(Stream::accepted(std::move(to_caller), certified()->context())),
        to_called_(Stream::called(std::move(to_called), certified()->context())) {}

  // Passes Hello and Challenge on, each as it is.
  void run() {
    Hello hello;
    link::Challenge challenge;
    if (to_caller_.receive(&hello, sizeof hello, soon()).is_ok() &&
        to_called_.send(&hello, sizeof hello, soon()).is_ok() &&
        to_called_.receive(&challenge, sizeof challenge, soon()).is_ok())
      (void)to_caller_.send(&challenge, sizeof challenge, soon());
  }

 private:
  Stream to_caller_;
  Stream to_called_;
};

TEST(TlsStream, NobodyBetweenTheTwoEndsCanPassTheirProofsOn) {
  Ends near = connected();
  Ends far = connected();
  Stream caller = Stream::called(std::move(near.caller), certified()->context());
  Stream called = Stream::accepted(std::move(far.called), certified()->context());
  Middle middle(std::move(near.called), std::move(far.caller));
  auto passing = std::async(std::launch::async, [&] { middle.run(); });
  auto answering = std::async(std::launch::async, [&] {
    Hello hello;
    if (!called.receive(&hello, sizeof hello, soon()).is_ok()) return;
    const link::Nonce nonce = link::new_nonce();
    const link::Challenge challenge = {
        nonce, link::acceptor_proof(kBetweenRanks, "secret", hello, nonce, called.binding())};
    (void)called.send(&challenge, sizeof challenge, soon());
  });
  const Status status =
      link::introduce(caller, kBetweenRanks, "secret", new_hello(kBetweenRanks), soon());
  EXPECT_THAT(status, FailsWith(Code::kRefused, Says("token")));
  passing.get();
  answering.get();
}

}  // namespace
}  // namespace lockstep
