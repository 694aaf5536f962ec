// The I/O thread of one Collective. It runs only if there are TCP links. It receives, and sends the
// bytes that the sockets did not take at once.
//
// Thread-safety: notify() from any thread, the rest from the owner.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "comm/collectives/host/tcp_link.h"

namespace lockstep::host {

class TcpIo {
 public:
  static Result<std::unique_ptr<TcpIo>> create();
  ~TcpIo();  // stops the thread

  // Before start().
  void add(std::shared_ptr<TcpLink> link) { links_.push_back(std::move(link)); }
  bool has_links() const { return !links_.empty(); }
  void start();

  void notify();
  // Waits until all sent bytes have reached the peers' kernels, at most `limit_ms`. Closing a
  // socket earlier could take the last operation away from a slower peer.
  void drain(int limit_ms);

 private:
  explicit TcpIo(Descriptor wake) : wake_(std::move(wake)) {}
  void run();

  const Descriptor wake_;  // eventfd
  std::atomic<bool> stop_{false};
  std::vector<std::shared_ptr<TcpLink>> links_;
  std::thread thread_;
};

}  // namespace lockstep::host
