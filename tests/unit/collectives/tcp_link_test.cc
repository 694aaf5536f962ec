// The I/O thread's side of a link, called by hand: what it makes of messages in awkward order.
#include "comm/collectives/host/tcp_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/prng.h"

namespace lockstep::host {
namespace {

constexpr Generation kGeneration = 7;

OpDescriptor barrier_of_step(uint64_t step) {
  return describe(make_mark(kGeneration, 1), OpKind::kBarrier, {.step = step}, {});
}

class TcpLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    link = std::make_unique<TcpLink>(link::Stream(Descriptor(ends[0])), kGeneration, &waiter,
                                     [this] { ++notified; });
    peer = Descriptor(ends[1]);
  }

  void peer_says(const OpDescriptor& op) {
    WireHeader header;
    header.kind = MessageKind::kOperation;
    header.mark = op.mark;
    header.op = op;
    header.checksum = checksum_of(header);
    ASSERT_EQ(write(peer.get(), &header, sizeof header), static_cast<ssize_t>(sizeof header));
  }

  // The bytes that a link sends for this operation.
  std::string told(const OpDescriptor& op, std::span<const std::byte> payload) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    TcpLink sender(link::Stream{Descriptor(ends[0])}, kGeneration, &waiter, [] {});
    const Descriptor wire(ends[1]);
    sender.exchange(op, {payload}, {});
    std::string text;
    char piece[4096];
    for (ssize_t got = 0; (got = recv(wire.get(), piece, sizeof piece, MSG_DONTWAIT)) > 0;) {
      text.append(piece, static_cast<size_t>(got));
      sender.flush();
    }
    return text;
  }
  void peer_sends(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(peer.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      link->receive();
      if (sent < 0 && link->hung_up()) return;
    }
    link->receive();
  }

  FlagBlock waiter;
  int notified = 0;
  Descriptor peer;
  std::unique_ptr<TcpLink> link;
};

TEST_F(TcpLinkTest, AMessageThatIsAheadWaitsForItsOperation) {
  const OpDescriptor op = barrier_of_step(1);
  peer_says(op);
  link->receive();
  EXPECT_FALSE(link->wants_input());
  EXPECT_EQ(link->flags().published.load(), 0U);
  link->exchange(op, {}, {});
  EXPECT_EQ(notified, 1);
  link->resume();
  EXPECT_EQ(link->flags().published.load(), op.mark);
  EXPECT_EQ(link->flags().ops[op.mark % kOpRing], op);
  EXPECT_FALSE(link->hung_up());
}

// poll() may have answered for the socket before resume() took the parked message and broke the
// link: what it showed then is being read, and is not written again.
TEST_F(TcpLinkTest, ALinkBrokenByAnotherOperationWritesNothingMore) {
  const OpDescriptor theirs = barrier_of_step(2);
  peer_says(theirs);
  link->receive();
  link->exchange(barrier_of_step(1), {}, {});
  link->resume();
  EXPECT_TRUE(link->hung_up());
  EXPECT_EQ(link->flags().ops[theirs.mark % kOpRing], theirs);
  const uint32_t seen = link->flags().doorbell.load();
  link->receive();
  EXPECT_EQ(link->flags().doorbell.load(), seen);
}

std::vector<std::byte> noise(size_t bytes) {
  Prng prng(bytes);
  std::vector<std::byte> made(bytes);
  for (std::byte& b : made) b = static_cast<std::byte>(prng.below(256));
  return made;
}

// Longer than what is hashed at a time, and in parts.
TEST_F(TcpLinkTest, PayloadsOfAllLengthsArrive) {
  uint64_t step = 0;
  for (const size_t bytes : {1, 4, 4096, 262'144, 262'145, 1'000'003}) {
    const OpDescriptor op = barrier_of_step(++step);
    const std::vector<std::byte> payload = noise(bytes);
    const std::string text = told(op, payload);
    ASSERT_EQ(text.size(), sizeof(WireHeader) + bytes + sizeof(PayloadChecksum));
    SetUp();
    link->exchange(op, {}, {.payload_bytes = bytes});
    peer_sends(text);
    ASSERT_EQ(link->flags().published.load(), op.mark) << bytes;
    EXPECT_EQ(std::memcmp(link->mailbox(op.mark), payload.data(), bytes), 0);
    EXPECT_FALSE(link->hung_up());
  }
}

// Every bit of the header, of the payload and of both checksums.
TEST_F(TcpLinkTest, NoFlippedBitIsTakenForAMessage) {
  const OpDescriptor op = barrier_of_step(1);
  const std::vector<std::byte> payload = noise(24);
  const std::string right = told(op, payload);
  for (size_t bit = 0; bit < right.size() * 8; ++bit) {
    SetUp();
    link->exchange(op, {}, {.payload_bytes = payload.size()});
    std::string flipped = right;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    peer_sends(flipped);
    EXPECT_EQ(link->flags().published.load(), 0U) << "bit " << bit;
    ASSERT_TRUE(link->hung_up()) << "bit " << bit;
    EXPECT_THAT(link->why_gone(), ::testing::HasSubstr("checksum"));
  }
}

TEST_F(TcpLinkTest, AnEndThatOnlyEndedSaysNothingOfDamage) {
  peer.reset();
  link->receive();
  EXPECT_TRUE(link->hung_up());
  EXPECT_EQ(link->why_gone(), nullptr);
}

}  // namespace
}  // namespace lockstep::host
