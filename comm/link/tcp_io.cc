#include "comm/link/tcp_io.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "comm/base/file.h"
#include "comm/link/data_socket.h"

namespace lockstep::link {

Result<std::unique_ptr<TcpIo>> TcpIo::create() {
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return Status(Code::kInternal, "eventfd: " + errno_text(errno));
  return std::unique_ptr<TcpIo>(new TcpIo(std::move(wake)));
}

TcpIo::~TcpIo() {
  stop_.store(true);
  notify();
  if (thread_.joinable()) thread_.join();
}

void TcpIo::start() {
  if (has_connections()) thread_ = std::thread([this] { run(); });
}

void TcpIo::notify() {
  eventfd_write(wake_.get(), 1);
}

void TcpIo::run() {
  std::vector<pollfd> fds(connections_.size() + 1);
  while (!stop_.load()) {
    fds[0] = {wake_.get(), POLLIN, 0};
    for (size_t i = 0; i < connections_.size(); ++i) {
      short events = 0;
      if (connections_[i]->wants_input()) events |= POLLIN;
      if (connections_[i]->wants_output()) events |= POLLOUT;
      // poll() skips a negative descriptor: a parked or broken one must not make it spin.
      fds[i + 1] = {events == 0 ? -1 : connections_[i]->fd(), events, 0};
    }
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) {
      eventfd_t count = 0;
      eventfd_read(wake_.get(), &count);
      for (const auto& connection : connections_) connection->resume();
    }
    for (size_t i = 0; i < connections_.size(); ++i) {
      const short ready = fds[i + 1].revents;
      // Receive first: a send to a peer that has left breaks the connection.
      if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) connections_[i]->receive();
      if ((ready & POLLOUT) != 0) connections_[i]->flush();
    }
  }
}

void TcpIo::drain(int limit_ms) {
  const Deadline deadline = Deadline::after(limit_ms);
  const auto drained = [](const auto& connection) { return connection->is_drained(); };
  while (!std::all_of(connections_.begin(), connections_.end(), drained) &&
         deadline.left_ms() > 0) {
    poll(nullptr, 0, 1);  // the kernel offers no event for "acknowledged"
  }
}

}  // namespace lockstep::link
