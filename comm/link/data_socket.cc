#include "comm/link/data_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/base/check.h"
#include "comm/base/clock.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/net/socket.h"
#include "comm/net/socket_address.h"

namespace lockstep::link {
namespace {

constexpr int kBacklog = 1024;
constexpr size_t kMostFdsPerMessage = 8;

Status socket_failed(Code code, const std::string& what) {
  return Status(code, what + ": " + errno_text(errno));
}

Result<Descriptor> open_unix_socket() {
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return socket_failed(Code::kInternal, "socket");
  return fd;
}

struct UnixAddress {
  sockaddr_un address = {};
  socklen_t bytes = 0;
};

Result<UnixAddress> unix_address(const std::string& name) {
  UnixAddress result;
  if (name.empty() || name.size() + 1 > sizeof result.address.sun_path) {
    return Status(Code::kInternal, "Unix socket name '" + name + "' is empty or too long");
  }
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

Status after_error(int fd, short events, const Deadline& deadline) {
  if (errno == EINTR) return Status::ok();
  if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_until_ready(fd, events, deadline);
  return socket_failed(Code::kUnavailable, "the connection broke");
}

void take_fds(msghdr* message, size_t most_fds, std::vector<Descriptor>* fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(message); c != nullptr; c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      Descriptor owned(received);
      if (fds->size() < most_fds) fds->push_back(std::move(owned));
    }
  }
}

}  // namespace

Deadline Deadline::after(int64_t ms, int cancel_fd) {
  return {SystemClock().monotonic_ms() + ms, cancel_fd};
}

int64_t Deadline::left_ms() const {
  return at_ms - SystemClock().monotonic_ms();
}

Status wait_until_ready(int fd, short events, const Deadline& deadline) {
  for (;;) {
    pollfd fds[2] = {{fd, events, 0}, {deadline.cancel_fd, POLLIN, 0}};
    const int64_t left = deadline.left_ms();
    const int ready = poll(fds, 2, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready < 0 && errno != EINTR) return socket_failed(Code::kInternal, "poll");
    if (fds[1].revents != 0) return Status(Code::kAborted, "cancelled while connecting");
    if (ready > 0 && fds[0].revents != 0) return Status::ok();
    if (left <= 0) return Status(Code::kTimeout, "no answer in time");
  }
}

Result<Descriptor> listen_unix(const std::string& name) {
  LOCKSTEP_ASSIGN_OR_RETURN(const UnixAddress address, unix_address(name));
  LOCKSTEP_ASSIGN_OR_RETURN(Descriptor fd, open_unix_socket());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.bytes) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return socket_failed(Code::kInternal, "listening on Unix socket @" + name);
  }
  return fd;
}

Result<Descriptor> listen_tcp(const std::string& host, std::string* address) {
  rpc::Address real;
  LOCKSTEP_ASSIGN_OR_RETURN(const int fd, rpc::open_listening_socket({host, 0}, &real));
  *address = rpc::to_string(real);
  return Descriptor(fd);
}

Descriptor accept_one(int listener) {
  return Descriptor(rpc::accept_connection(listener));
}

Result<Descriptor> connect_unix(const std::string& name) {
  LOCKSTEP_ASSIGN_OR_RETURN(const UnixAddress address, unix_address(name));
  LOCKSTEP_ASSIGN_OR_RETURN(Descriptor fd, open_unix_socket());
  // A Unix socket connects at once or not at all.
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.address), address.bytes) != 0) {
    return socket_failed(Code::kUnavailable, "connecting to Unix socket @" + name);
  }
  return fd;
}

Result<Descriptor> connect_tcp(const std::string& text, const Deadline& deadline) {
  LOCKSTEP_ASSIGN_OR_RETURN(const rpc::Address address, rpc::parse_address(text));
  LOCKSTEP_ASSIGN_OR_RETURN(const rpc::SocketAddress where, rpc::to_socket_address(address));
  LOCKSTEP_ASSIGN_OR_RETURN(const int opened, rpc::open_client_socket(address));
  Descriptor fd(opened);
  if (connect(fd.get(), where.get(), where.bytes) != 0) {
    if (errno != EINPROGRESS) return socket_failed(Code::kUnavailable, "connecting to " + text);
    LOCKSTEP_RETURN_IF_ERROR(wait_until_ready(fd.get(), POLLOUT, deadline));
    socklen_t bytes = sizeof errno;
    int error = 0;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    errno = error;
    if (error != 0) return socket_failed(Code::kUnavailable, "connecting to " + text);
  }
  if (rpc::is_connected_to_itself(fd.get()))
    return Status(Code::kUnavailable, "nobody listens on " + text);
  return fd;
}

bool peer_is_same_user(int fd) {
  ucred credentials = {};
  socklen_t bytes = sizeof credentials;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 &&
         credentials.uid == geteuid();
}

bool has_hung_up(int fd) {
  pollfd state = {fd, POLLRDHUP, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR | POLLRDHUP)) != 0;
}

Status send_all(int fd, const void* data, size_t bytes, const Deadline& deadline) {
  return send_with_fds(fd, data, bytes, {}, deadline);
}

Status receive_all(int fd, void* data, size_t bytes, const Deadline& deadline) {
  return receive_with_fds(fd, data, bytes, 0, nullptr, deadline);
}

Status send_with_fds(int fd, const void* data, size_t bytes, const std::vector<int>& fds,
                     const Deadline& deadline) {
  LOCKSTEP_CHECK(fds.size() <= kMostFdsPerMessage, "too many descriptors for one message");
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFdsPerMessage * sizeof(int))] = {};
  const auto* at = static_cast<const char*>(data);
  bool first = true;
  while (bytes > 0) {
    iovec part = {const_cast<char*>(at), bytes};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (first && !fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      LOCKSTEP_RETURN_IF_ERROR(after_error(fd, POLLOUT, deadline));
      continue;
    }
    first = false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return Status::ok();
}

Status receive_with_fds(int fd, void* data, size_t bytes, size_t most_fds,
                        std::vector<Descriptor>* fds, const Deadline& deadline) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFdsPerMessage * sizeof(int))] = {};
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    iovec part = {at, bytes};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fds != nullptr) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
    }
    const ssize_t received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (received == 0) return Status(Code::kUnavailable, "the peer closed the connection");
    if (received < 0) {
      LOCKSTEP_RETURN_IF_ERROR(after_error(fd, POLLIN, deadline));
      continue;
    }
    if (fds != nullptr) take_fds(&message, most_fds, fds);
    if (fds != nullptr && (message.msg_flags & MSG_CTRUNC) != 0)
      return Status(Code::kConfig,
                    "the kernel dropped descriptors that a peer sent, because this "
                    "process may have no more than " +
                        std::to_string(most_descriptors()) +
                        " open; raise the limit (ulimit -n), then start again");
    at += received;
    bytes -= static_cast<size_t>(received);
  }
  return Status::ok();
}

}  // namespace lockstep::link
