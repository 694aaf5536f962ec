// One TCP connection. Internal; the handle that users hold is in asio_transport.cc.
//
//            send()                      write ends and closing
//   open ──────────────▶ open    closing ─────────────────────▶ lingering ──▶ over
//     │  close()                    ▲                            read and drop until the peer's
//     ├─────────────────────────────┘                            end or limits::kLingerMs
//     └─ end of stream, error, overflow ──▶ over, on_close posted
//
// Lingering matters: closing a socket with unread input resets the connection, and the peer could
// lose our last frame (an AuthRefuse, a Goodbye).
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/rpc/asio_transport.h"

namespace lockstep::rpc {

class AsioConnection final : public std::enable_shared_from_this<AsioConnection> {
 public:
  // Takes a connected socket.
  AsioConnection(AsioLoop& loop, boost::asio::ip::tcp::socket socket);

  void set_handlers(Connection::Handlers handlers);
  void send(wire::Frame frame);
  void close();
  void set_frame_limit(size_t bytes) { decoder_.set_limit(bytes); }
  bool is_open() const { return state_ == State::kOpen; }
  size_t queued_bytes() const { return queued_bytes_; }
  const std::string& peer() const { return peer_; }

 private:
  enum class State { kOpen, kClosing, kLingering, kOver };

  void wait_readable();
  void on_readable();
  void deliver(std::string_view bytes);
  void write();
  void on_written(const boost::system::error_code& error, size_t bytes);
  void linger();
  void end(Status why);
  void report_end();
  void drop();

  AsioLoop& loop_;
  boost::asio::ip::tcp::socket socket_;
  std::string peer_;
  State state_ = State::kOpen;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool has_sent_ = false;
  TimerId linger_timer_ = 0;
  std::shared_ptr<Connection::Handlers> handlers_;  // shared: one may replace itself while it runs
  std::optional<Status> unreported_;                // why it ended; on_close is still to come
  wire::FrameDecoder decoder_;
  std::vector<std::string> queue_;    // waits for the write in progress
  std::vector<std::string> sending_;  // the write in progress
  size_t queued_bytes_ = 0;           // of both
};

}  // namespace lockstep::rpc
