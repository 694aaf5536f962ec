// Shared by the tests of this folder: a logger that remembers, a loop on a thread of its own, and
// sockets that behave as badly as a test wants. Everything waits on events, with a deadline that
// only a failing test reaches.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/base/log.h"
#include "comm/rpc/asio_transport.h"

namespace lockstep::rpc {

inline constexpr auto kTestDeadline = std::chrono::seconds(30);

// Values pushed by one thread, awaited by another.
template <typename T>
class Inbox {
 public:
  void push(T value) {
    std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  // All values, as soon as there are `count`.
  std::vector<T> wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kTestDeadline, [&] { return values_.size() >= count; }))
        << "only " << values_.size() << " of " << count << " came";
    return values_;
  }
  std::vector<T> now() {
    std::lock_guard lock(mutex_);
    return values_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

class MemoryLogger final : public Logger {
 public:
  void write(std::string_view, std::string_view, std::string_view message, LogFields) override {
    lines.push(std::string(message));
  }
  Inbox<std::string> lines;
};

class LoopThread {
 public:
  LoopThread() : thread_([this] { loop.run(); }) {}
  ~LoopThread() {
    loop.stop();
    thread_.join();
  }
  // Runs `fn` on the loop's thread and waits for it.
  void call(const std::function<void()>& fn) {
    std::promise<void> done;
    loop.post([&] {
      fn();
      done.set_value();
    });
    done.get_future().wait();
  }

  AsioLoop loop;

 private:
  std::thread thread_;
};

// A blocking client without any manners.
class RawSocket {
 public:
  explicit RawSocket(const Address& address)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{30, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    ::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~RawSocket() { ::close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool send(std::string_view bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Everything until the other side ends the connection; fails the test when it does not.
  std::string receive_all() {
    std::string all;
    char chunk[4096];
    for (;;) {
      const ssize_t n = ::recv(fd_, chunk, sizeof chunk, 0);
      EXPECT_FALSE(n < 0 && errno == EAGAIN) << "the other side keeps the connection open";
      if (n <= 0) return all;
      all.append(chunk, static_cast<size_t>(n));
    }
  }
  // Receives until `text` has come, and returns what came.
  std::string receive_until(const std::string& text) {
    std::string all;
    char byte = 0;
    while (all.find(text) == std::string::npos) {
      if (::recv(fd_, &byte, 1, 0) <= 0) {
        ADD_FAILURE() << "the connection ended after: " << all;
        break;
      }
      all += byte;
    }
    return all;
  }

 private:
  int fd_;
};

}  // namespace lockstep::rpc
