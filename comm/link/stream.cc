#include "comm/link/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/file.h"

namespace lockstep::link {
namespace {

using rpc::IoResult;
using State = rpc::IoResult::State;

constexpr size_t kRecordBytes = 16384;  // the largest content of a TLS record

IoResult of_socket(ssize_t n, State when_busy) {
  if (n > 0) return {State::kDone, static_cast<size_t>(n)};
  if (n == 0) return {State::kEnd};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {when_busy};
  return {State::kBroken, 0,
          Status(Code::kUnavailable, "the connection broke: " + errno_text(errno))};
}

// Ok if the caller has to repeat the call.
Status wait_for(int fd, const IoResult& result, const Deadline& deadline) {
  switch (result.state) {
    case State::kDone:
      return Status::ok();
    case State::kWantsRead:
      return wait_until_ready(fd, POLLIN, deadline);
    case State::kWantsWrite:
      return wait_until_ready(fd, POLLOUT, deadline);
    case State::kEnd:
      return Status(Code::kUnavailable, "the peer closed the connection");
    case State::kBroken:
      break;
  }
  return result.why;
}

}  // namespace

struct Stream::Tls {
  explicit Tls(std::unique_ptr<rpc::TlsSocket> made) : socket(std::move(made)) {}

  IoResult send(const iovec* parts, size_t count);

  std::mutex mutex;
  const std::unique_ptr<rpc::TlsSocket> socket;
  std::vector<char> record;  // made on first use
};

// A record costs a system call at each end, so short parts share one. Its content depends on the
// parts alone: the same parts, offered again, give the same record.
IoResult Stream::Tls::send(const iovec* parts, size_t count) {
  if (count == 1 || parts[0].iov_len >= kRecordBytes)
    return socket->write(static_cast<const char*>(parts[0].iov_base), parts[0].iov_len);
  record.resize(kRecordBytes);
  size_t bytes = 0;
  for (size_t i = 0; i < count && bytes < kRecordBytes; ++i) {
    const size_t more = std::min(parts[i].iov_len, kRecordBytes - bytes);
    std::memcpy(record.data() + bytes, parts[i].iov_base, more);
    bytes += more;
  }
  return socket->write(record.data(), bytes);
}

Stream::Stream() = default;
Stream::Stream(Descriptor fd) : fd_(std::move(fd)) {}
Stream::Stream(Stream&& other) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept = default;
Stream::~Stream() = default;

Stream Stream::accepted(Descriptor fd, std::shared_ptr<const rpc::TlsContext> tls) {
  Stream stream(std::move(fd));
  if (tls != nullptr)
    stream.tls_ = std::make_unique<Tls>(rpc::TlsSocket::accept(std::move(tls), stream.fd()));
  return stream;
}

Stream Stream::called(Descriptor fd, std::shared_ptr<const rpc::TlsContext> tls) {
  Stream stream(std::move(fd));
  if (tls != nullptr)
    stream.tls_ =
        std::make_unique<Tls>(rpc::TlsSocket::connect_to_any(std::move(tls), stream.fd()));
  return stream;
}

Descriptor Stream::release() && {
  LOCKSTEP_CHECK(tls_ == nullptr, "a connection under TLS is more than its socket");
  return std::move(fd_);
}

IoResult Stream::try_send(const iovec* parts, size_t count) {
  if (tls_ != nullptr) {
    std::lock_guard lock(tls_->mutex);
    return tls_->send(parts, count);
  }
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t n = sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0 || errno != EINTR) return of_socket(n, State::kWantsWrite);
  }
}

IoResult Stream::try_send(const void* data, size_t bytes) {
  const iovec part = {const_cast<void*>(data), bytes};
  return try_send(&part, 1);
}

IoResult Stream::try_receive(void* data, size_t bytes) {
  if (tls_ != nullptr) {
    std::lock_guard lock(tls_->mutex);
    return tls_->socket->read(static_cast<char*>(data), bytes);
  }
  for (;;) {
    const ssize_t n = recv(fd(), data, bytes, MSG_DONTWAIT);
    if (n >= 0 || errno != EINTR) return of_socket(n, State::kWantsRead);
  }
}

Status Stream::send(const void* data, size_t bytes, const Deadline& deadline) {
  for (const auto* at = static_cast<const char*>(data); bytes > 0;) {
    const IoResult sent = try_send(at, bytes);
    LOCKSTEP_RETURN_IF_ERROR(wait_for(fd(), sent, deadline));
    at += sent.bytes;
    bytes -= sent.bytes;
  }
  return Status::ok();
}

Status Stream::receive(void* data, size_t bytes, const Deadline& deadline) {
  for (auto* at = static_cast<char*>(data); bytes > 0;) {
    const IoResult received = try_receive(at, bytes);
    LOCKSTEP_RETURN_IF_ERROR(wait_for(fd(), received, deadline));
    at += received.bytes;
    bytes -= received.bytes;
  }
  return Status::ok();
}

std::string Stream::binding() const {
  if (tls_ == nullptr) return "";
  std::lock_guard lock(tls_->mutex);
  return tls_->socket->binding();
}

}  // namespace lockstep::link
