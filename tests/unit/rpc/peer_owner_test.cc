// Whose socket is at the other end of a connection on loopback.
#include "comm/net/peer_owner.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "comm/base/descriptors.h"

namespace lockstep {
namespace {

constexpr uid_t kNobody = 65534;

struct Listening {
  Descriptor fd;
  sockaddr_storage where = {};
  socklen_t bytes = 0;
};

Listening listen_on(int family) {
  Listening made;
  if (family == AF_INET) {
    auto& in = reinterpret_cast<sockaddr_in&>(made.where);
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    made.bytes = sizeof in;
  } else {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(made.where);
    in6.sin6_family = AF_INET6;
    in6.sin6_addr = in6addr_loopback;
    made.bytes = sizeof in6;
  }
  Descriptor fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* const address = reinterpret_cast<sockaddr*>(&made.where);
  if (::bind(fd.get(), address, made.bytes) != 0 || ::listen(fd.get(), 4) != 0) return made;
  EXPECT_EQ(::getsockname(fd.get(), address, &made.bytes), 0);
  made.fd = std::move(fd);
  return made;
}

Descriptor connect_to(const Listening& there) {
  Descriptor fd(::socket(there.where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&there.where), there.bytes), 0);
  return fd;
}

class PeerOwner : public ::testing::TestWithParam<int> {};

TEST_P(PeerOwner, IsTheUserOfTheOtherEnd) {
  const Listening ours = listen_on(GetParam());
  if (!ours.fd.is_open()) GTEST_SKIP() << "no loopback of this family";
  const Descriptor caller = connect_to(ours);
  const Descriptor called(::accept4(ours.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!owner_of_peer(caller.get())) GTEST_SKIP() << "the kernel does not say";
  EXPECT_EQ(owner_of_peer(caller.get()), ::geteuid());
  EXPECT_EQ(owner_of_peer(called.get()), ::geteuid());
  EXPECT_TRUE(may_be_our_peer(caller.get()));
}

TEST_P(PeerOwner, IsNotUsIfAnotherUserHasBoundThePort) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may be another user";
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(kNobody) != 0) ::_exit(1);
    const Listening theirs = listen_on(GetParam());
    if (::write(told[1], &theirs.where, sizeof theirs.where) < 0) ::_exit(1);
    const Descriptor called(::accept4(theirs.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char byte;
    (void)!::read(called.get(), &byte, 1);  // until the test hangs up
    ::_exit(0);
  }
  Listening theirs;
  ASSERT_EQ(::read(told[0], &theirs.where, sizeof theirs.where),
            static_cast<ssize_t>(sizeof theirs.where));
  theirs.bytes = GetParam() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  {
    const Descriptor caller = connect_to(theirs);
    if (owner_of_peer(caller.get())) {
      EXPECT_EQ(owner_of_peer(caller.get()), kNobody);
      EXPECT_FALSE(may_be_our_peer(caller.get()));
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(told[0]);
  ::close(told[1]);
}

INSTANTIATE_TEST_SUITE_P(Families, PeerOwner, ::testing::Values(AF_INET, AF_INET6),
                         [](const auto& test) { return test.param == AF_INET ? "v4" : "v6"; });

// Beyond loopback the kernel knows only its own ends; a Unix socket has ways of its own.
TEST(PeerOwnerElsewhere, IsNotAsked) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_EQ(owner_of_peer(ends[0]), std::nullopt);
  EXPECT_TRUE(may_be_our_peer(ends[0]));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace lockstep
