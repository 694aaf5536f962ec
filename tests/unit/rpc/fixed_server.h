// A server that says the same to every client, whatever that is.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "comm/net/socket.h"
#include "tests/unit/rpc/test_support.h"

namespace lockstep::rpc {

// Answers one request after the other with the same bytes; without any it says nothing at all.
class FixedServer {
 public:
  explicit FixedServer(std::string answer, const std::string& host = "127.0.0.1")
      : answer_(std::move(answer)) {
    auto listening = open_listening_socket({host, 0}, &address);
    EXPECT_TRUE(listening.is_ok()) << listening.status().message();
    listening_ = *listening;
    thread_ = std::thread([this] { serve(); });
  }
  ~FixedServer() {
    ::shutdown(listening_, SHUT_RDWR);
    thread_.join();
    for (const int fd : open_) ::close(fd);
    ::close(listening_);
  }

  Address address;
  Inbox<std::string> requests;

 private:
  void serve() {
    pollfd ready{listening_, POLLIN, 0};
    for (;;) {
      ::poll(&ready, 1, -1);
      const int fd = accept_connection(listening_);
      if (fd < 0) return;
      open_.push_back(fd);
      requests.push(read_request(fd));
      ::send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      if (!answer_.empty()) ::shutdown(fd, SHUT_WR);
    }
  }
  // A request counts with its body if its header says how long the body is.
  static bool is_whole(const std::string& request) {
    const size_t end = request.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const size_t length = request.find(kLength);
    const size_t body =
        length == std::string::npos ? 0 : std::stoul(request.substr(length + kLength.size()));
    return request.size() >= end + 4 + body;
  }
  static std::string read_request(int fd) {
    std::string all;
    pollfd ready{fd, POLLIN, 0};
    char chunk[4096];
    while (!is_whole(all)) {
      ::poll(&ready, 1, -1);
      const ssize_t n = ::recv(fd, chunk, sizeof chunk, 0);
      if (n <= 0) break;
      all.append(chunk, static_cast<size_t>(n));
    }
    return all;
  }

  std::string answer_;
  int listening_ = -1;
  std::vector<int> open_;
  std::thread thread_;
};

}  // namespace lockstep::rpc
