#include "comm/net/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "comm/base/file.h"
#include "comm/net/socket_address.h"

namespace lockstep::rpc {
namespace {

constexpr int kBacklog = 4096;

constexpr int kIdleS = 10;  // without a byte; then the kernel probes the other end,
constexpr int kProbeS = 5;  // at this interval,
constexpr int kProbes = 3;  // this many times
constexpr unsigned kUnansweredMs = 1000 * (kIdleS + kProbes * kProbeS);  // for sent bytes

// A lost machine sends no word. Without the last four settings its connections would never end.
void set_options(int fd) {
  const auto set = [fd](int level, int name, auto value) {
    (void)::setsockopt(fd, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleS);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeS);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMs);
}

Status cannot_listen(const Address& address, int error) {
  const std::string where = "cannot listen on " + to_string(address) + ": ";
  if (error == EADDRINUSE)
    return Status(Code::kConfig, where +
                                     "the port is taken by another program; choose another "
                                     "port, or 0 for any free one");
  if (error == EACCES)
    return Status(Code::kConfig, where + "ports below 1024 need root; choose a higher one");
  if (error == EADDRNOTAVAIL)
    return Status(Code::kConfig, where + "this machine has no such address");
  return Status(Code::kConfig, where + errno_text(error));
}

Address name_of(const SocketAddress& socket_address) {
  char text[INET6_ADDRSTRLEN] = "?";
  const sockaddr* any = socket_address.get();
  if (any->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(any);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return {text, ntohs(v4->sin_port)};
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(any);
  ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  return {text, ntohs(v6->sin6_port)};
}

}  // namespace

Result<SocketAddress> to_socket_address(const Address& address) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Address numeric, numeric_address(address));
  SocketAddress out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (::inet_pton(AF_INET, numeric.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(numeric.port);
    out.bytes = sizeof *v4;
  } else {
    ::inet_pton(AF_INET6, numeric.host.c_str(), &v6->sin6_addr);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(numeric.port);
    out.bytes = sizeof *v6;
  }
  return out;
}

Result<int> open_listening_socket(const Address& address, Address* real) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SocketAddress where, to_socket_address(address));
  if (name_of(where).host == "0.0.0.0" || name_of(where).host == "::")
    return Status(Code::kConfig, to_string(address) +
                                     " stands for every network that this machine is in: name one");
  const int fd = ::socket(where.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return cannot_listen(address, errno);
  const int one = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  SocketAddress bound;
  bound.bytes = sizeof bound.storage;
  if (::bind(fd, where.get(), where.bytes) != 0 || ::listen(fd, kBacklog) != 0 ||
      ::getsockname(fd, bound.get(), &bound.bytes) != 0) {
    const int error = errno;
    ::close(fd);
    return cannot_listen(address, error);
  }
  *real = name_of(bound);
  return fd;
}

Result<int> open_client_socket(const Address& address) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SocketAddress where, to_socket_address(address));
  const int fd = ::socket(where.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return Status(Code::kUnavailable,
                  "cannot open a socket for " + to_string(address) + ": " + errno_text(errno));
  set_options(fd);
  return fd;
}

int accept_connection(int listening_fd) {
  const int fd = ::accept4(listening_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) set_options(fd);
  return fd;
}

std::string peer_name(int fd) {
  SocketAddress peer;
  peer.bytes = sizeof peer.storage;
  if (::getpeername(fd, peer.get(), &peer.bytes) != 0) return "?";
  return to_string(name_of(peer));
}

bool is_connected_to_itself(int fd) {
  SocketAddress peer;
  SocketAddress self;
  peer.bytes = self.bytes = sizeof peer.storage;
  return ::getpeername(fd, peer.get(), &peer.bytes) == 0 &&
         ::getsockname(fd, self.get(), &self.bytes) == 0 && name_of(peer) == name_of(self);
}

}  // namespace lockstep::rpc
