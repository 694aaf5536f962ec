#include "comm/http/http_call.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "comm/base/byte_units.h"
#include "comm/base/file.h"
#include "comm/http/http_answer_reader.h"
#include "comm/net/socket.h"
#include "comm/net/socket_address.h"
#include "comm/tls/tls_socket.h"

namespace lockstep::http {
namespace {

class Socket {
 public:
  Socket(int fd, std::string name, int64_t timeout_ms)
      : fd_(fd), name_(std::move(name)), timeout_ms_(timeout_ms), start_(Steady::now()) {}
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  Status connect(const rpc::SocketAddress& where) {
    if (::connect(fd_, where.get(), where.bytes) != 0) {
      if (errno != EINPROGRESS) return unavailable("cannot connect to", errno);
      LOCKSTEP_RETURN_IF_ERROR(wait(POLLOUT));
      int error = 0;
      socklen_t bytes = sizeof error;
      ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &bytes);
      if (error != 0) return unavailable("cannot connect to", error);
    }
    if (rpc::is_connected_to_itself(fd_)) return unavailable("cannot connect to", ECONNREFUSED);
    return Status::ok();
  }

  // Uses TLS from now on. `host` is the called name.
  void secure(std::shared_ptr<const rpc::TlsContext> context, const std::string& host) {
    tls_ = rpc::TlsSocket::connect(std::move(context), fd_, host);
  }

  Status send(std::string_view bytes) {
    if (tls_) return send_tls(bytes);
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EAGAIN) return unavailable("cannot ask", errno);
      if (n < 0) LOCKSTEP_RETURN_IF_ERROR(wait(POLLOUT));
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    }
    return Status::ok();
  }

  // 0 at the end of the stream.
  Result<size_t> receive(char* out, size_t bytes) {
    if (tls_) return receive_tls(out, bytes);
    for (;;) {
      const ssize_t n = ::recv(fd_, out, bytes, 0);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return unavailable("no answer from", errno);
      LOCKSTEP_RETURN_IF_ERROR(wait(POLLIN));
    }
  }

 private:
  using Steady = std::chrono::steady_clock;

  using State = rpc::IoResult::State;

  Status send_tls(std::string_view bytes) {
    while (!bytes.empty()) {
      const rpc::IoResult put = tls_->write(bytes.data(), bytes.size());
      if (put.state == State::kEnd) return unavailable("no answer from", ECONNRESET);
      LOCKSTEP_RETURN_IF_ERROR(wait_for(put));
      bytes.remove_prefix(put.bytes);
    }
    return Status::ok();
  }

  Result<size_t> receive_tls(char* out, size_t bytes) {
    for (;;) {
      const rpc::IoResult got = tls_->read(out, bytes);
      if (got.state == State::kDone || got.state == State::kEnd) return got.bytes;
      LOCKSTEP_RETURN_IF_ERROR(wait_for(got));
    }
  }

  Status wait_for(const rpc::IoResult& result) {
    if (result.state == State::kBroken) return result.why.with_context(name_);
    if (result.state == State::kWantsRead) return wait(POLLIN);
    if (result.state == State::kWantsWrite) return wait(POLLOUT);
    return Status::ok();
  }

  Status wait(short events) {
    pollfd poll_fd{fd_, events, 0};
    for (;;) {
      const auto used =
          std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - start_);
      const int64_t left_ms = timeout_ms_ - used.count();
      const int ready = left_ms <= 0 ? 0 : ::poll(&poll_fd, 1, static_cast<int>(left_ms));
      if (ready > 0) return Status::ok();
      if (ready < 0 && errno == EINTR) continue;
      return Status(Code::kTimeout,
                    name_ + " did not answer within " + std::to_string(timeout_ms_) + " ms");
    }
  }

  Status unavailable(const char* what, int error) const {
    return Status(Code::kUnavailable, std::string(what) + " " + name_ + ": " + errno_text(error));
  }

  int fd_;
  std::string name_;
  int64_t timeout_ms_;
  Steady::time_point start_;
  std::unique_ptr<rpc::TlsSocket> tls_;
};

}  // namespace

Result<GetResult> http_call(const Call& call, int64_t timeout_ms, size_t limit_bytes) {
  if (!call.tls) LOCKSTEP_RETURN_IF_ERROR(rpc::check_loopback(call.address));
  const std::string name = rpc::to_string({call.host, call.address.port});
  LOCKSTEP_ASSIGN_OR_RETURN(const rpc::SocketAddress where, rpc::to_socket_address(call.address));
  LOCKSTEP_ASSIGN_OR_RETURN(const int fd, rpc::open_client_socket(call.address));
  Socket socket(fd, name, timeout_ms);
  LOCKSTEP_RETURN_IF_ERROR(socket.connect(where));
  if (call.tls) socket.secure(call.tls, call.host);
  LOCKSTEP_RETURN_IF_ERROR(socket.send(call.request));
  HttpAnswerReader answer(limit_bytes);
  char chunk[16 * kKib];
  while (!answer.is_done()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t bytes, socket.receive(chunk, sizeof chunk));
    const Status status = bytes == 0 ? answer.end() : answer.take({chunk, bytes});
    LOCKSTEP_RETURN_IF_ERROR(status.with_context(name));
  }
  return std::move(answer).result();
}

std::string authorization_line(const std::string& token) {
  return token.empty() ? "" : "Authorization: Bearer " + token + "\r\n";
}

}  // namespace lockstep::http
