#include "comm/collectives/host/tcp_io.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "comm/base/file.h"

namespace lockstep::host {

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
  if (has_links()) thread_ = std::thread([this] { run(); });
}

void TcpIo::notify() {
  eventfd_write(wake_.get(), 1);
}

void TcpIo::run() {
  std::vector<pollfd> fds(links_.size() + 1);
  while (!stop_.load()) {
    fds[0] = {wake_.get(), POLLIN, 0};
    for (size_t i = 0; i < links_.size(); ++i) {
      short events = 0;
      if (links_[i]->wants_input()) events |= POLLIN;
      if (links_[i]->wants_output()) events |= POLLOUT;
      // poll() skips a negative descriptor: a parked or broken link must not make it spin.
      fds[i + 1] = {events == 0 ? -1 : links_[i]->fd(), events, 0};
    }
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) {
      eventfd_t count = 0;
      eventfd_read(wake_.get(), &count);
      for (const auto& link : links_) link->resume();
    }
    for (size_t i = 0; i < links_.size(); ++i) {
      const short ready = fds[i + 1].revents;
      // Receive first: a send to a peer that has left breaks the link.
      if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) links_[i]->receive();
      if ((ready & POLLOUT) != 0) links_[i]->flush();
    }
  }
}

void TcpIo::drain(int limit_ms) {
  const Deadline deadline = Deadline::after(limit_ms);
  const auto drained = [](const auto& link) { return link->is_drained(); };
  while (!std::all_of(links_.begin(), links_.end(), drained) && deadline.left_ms() > 0) {
    poll(nullptr, 0, 1);  // the kernel offers no event for "acknowledged"
  }
}

}  // namespace lockstep::host
