// The I/O thread's side of a link, called by hand: what it makes of messages in awkward order.
#include "comm/collectives/host/tcp_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

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
    link = std::make_unique<TcpLink>(Stream(Fd(ends[0])), kGeneration, &waiter,
                                     [this] { ++notified; });
    peer = Fd(ends[1]);
  }

  void peer_says(const OpDescriptor& op) {
    WireHeader header;
    header.kind = MessageKind::kOperation;
    header.mark = op.mark;
    header.op = op;
    ASSERT_EQ(write(peer.get(), &header, sizeof header), static_cast<ssize_t>(sizeof header));
  }

  FlagBlock waiter;
  int notified = 0;
  Fd peer;
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

}  // namespace
}  // namespace lockstep::host
