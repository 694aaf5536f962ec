// An I/O thread for connections. It runs only if there are any. It receives, and sends the bytes
// that the sockets did not take at once.
//
// Thread-safety: notify() from any thread, the rest from the owner.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/base/status.h"

namespace lockstep::link {

// A connection that an I/O thread serves. The thread calls everything here, and no call waits.
class ServedConnection {
 public:
  virtual ~ServedConnection() = default;

  virtual int fd() const = 0;
  // Both false: the thread leaves the connection alone until notify().
  virtual bool wants_input() = 0;
  virtual bool wants_output() = 0;
  virtual void receive() = 0;
  virtual void flush() = 0;
  // After notify(): what kept the connection from receiving may be over.
  virtual void resume() = 0;
  // True if everything sent has arrived at the peer's kernel, or never will.
  virtual bool is_drained() = 0;
};

class TcpIo {
 public:
  static Result<std::unique_ptr<TcpIo>> create();
  ~TcpIo();  // stops the thread

  // Before start().
  void add(std::shared_ptr<ServedConnection> connection) {
    connections_.push_back(std::move(connection));
  }
  bool has_connections() const { return !connections_.empty(); }
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
  std::vector<std::shared_ptr<ServedConnection>> connections_;
  std::thread thread_;
};

}  // namespace lockstep::link
