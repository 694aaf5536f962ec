#include "comm/net/peer_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace lockstep {
namespace {

struct Ends {
  sockaddr_storage ours = {};
  sockaddr_storage theirs = {};
};

bool is_loopback(const sockaddr_storage& end) {
  if (end.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(end);
    return ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  const auto& in6 = reinterpret_cast<const sockaddr_in6&>(end);
  return end.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

std::optional<Ends> ends_of(int socket) {
  Ends ends;
  socklen_t bytes = sizeof ends.ours;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&ends.ours), &bytes) != 0)
    return std::nullopt;
  bytes = sizeof ends.theirs;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&ends.theirs), &bytes) != 0)
    return std::nullopt;
  return ends;
}

void put(const sockaddr_storage& end, __be16* port, __be32* address) {
  if (end.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(end);
    *port = in.sin_port;
    std::memcpy(address, &in.sin_addr, sizeof in.sin_addr);
  } else {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(end);
    *port = in6.sin6_port;
    std::memcpy(address, &in6.sin6_addr, sizeof in6.sin6_addr);
  }
}

struct Question {
  nlmsghdr header = {};
  inet_diag_req_v2 of = {};
};

// The socket whose own end is our peer.
Question question(const Ends& ends) {
  Question asked;
  asked.header.nlmsg_len = sizeof asked;
  asked.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  asked.header.nlmsg_flags = NLM_F_REQUEST;
  asked.of.sdiag_family = static_cast<uint8_t>(ends.ours.ss_family);
  asked.of.sdiag_protocol = IPPROTO_TCP;
  asked.of.idiag_states = ~0U;
  put(ends.theirs, &asked.of.id.idiag_sport, asked.of.id.idiag_src);
  put(ends.ours, &asked.of.id.idiag_dport, asked.of.id.idiag_dst);
  asked.of.id.idiag_cookie[0] = asked.of.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return asked;
}

std::optional<uid_t> answer_to(const Question& asked, int netlink) {
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  if (sendto(netlink, &asked, sizeof asked, 0, reinterpret_cast<sockaddr*>(&kernel),
             sizeof kernel) != static_cast<ssize_t>(sizeof asked))
    return std::nullopt;
  alignas(nlmsghdr) char answer[1024];
  const ssize_t bytes = recv(netlink, answer, sizeof answer, 0);
  constexpr size_t kLeast = NLMSG_LENGTH(sizeof(inet_diag_msg));
  if (bytes < static_cast<ssize_t>(kLeast)) return std::nullopt;
  nlmsghdr header;
  std::memcpy(&header, answer, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len < kLeast) return std::nullopt;
  inet_diag_msg found;
  std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
  return found.idiag_uid;
}

}  // namespace

std::optional<uid_t> owner_of_peer(int socket) {
  const auto ends = ends_of(socket);
  if (!ends || !is_loopback(ends->theirs)) return std::nullopt;
  const int netlink = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) return std::nullopt;
  const timeval patience = {1, 0};
  (void)setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::optional<uid_t> owner = answer_to(question(*ends), netlink);
  ::close(netlink);
  return owner;
}

bool may_be_our_peer(int socket) {
  const std::optional<uid_t> owner = owner_of_peer(socket);
  return !owner || *owner == ::geteuid() || *owner == 0;
}

}  // namespace lockstep
