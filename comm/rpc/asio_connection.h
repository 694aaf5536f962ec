// One TCP connection. Internal; users hold the handle in asio_transport.cc.
//
//            send()                      write ends and closing
//   open ──────────────▶ open    closing ─────────────────────▶ lingering ──▶ over
//     │  close()                    ▲                            read and drop until the peer's
//     ├─────────────────────────────┘                            end or limits::kLingerMs
//     └─ end of stream, error, overflow ──▶ over, on_close posted
//
// Why it lingers: closing a socket with unread input resets the connection. The peer could then
// lose our last frame (an AuthRefuse, a Goodbye), or the alert that names TLS's error.
//
// With TLS the handshake is part of the first reads and writes, and sends wait for it. A peer that
// fails the handshake ends the connection like any other end; on_close has the reason.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/rpc/asio_loop.h"
#include "comm/tls/tls_socket.h"

namespace lockstep::rpc {

class AsioConnection final : public std::enable_shared_from_this<AsioConnection> {
 public:
  // Takes a connected socket. `tls` is null for a connection in the clear.
  AsioConnection(AsioLoop& loop, boost::asio::ip::tcp::socket socket,
                 std::unique_ptr<TlsSocket> tls);

  void set_handlers(Connection::Handlers handlers);
  void send(wire::SharedFrame frame);
  void close();
  // Ends the connection; on_close gets `why`. Also works before there are handlers.
  void end(Status why);
  void set_frame_limit(size_t bytes) { decoder_.set_limit(bytes); }
  bool is_open() const { return state_ == State::kOpen; }
  size_t queued_bytes() const { return queued_bytes_; }
  const std::string& peer() const { return peer_; }

 private:
  enum class State { kOpen, kClosing, kLingering, kOver };

  void wait_readable();
  void on_readable();
  IoResult read_some(char* out, size_t bytes);
  void deliver(std::string_view bytes);
  void write();
  void write_tls();
  wire::SharedFrame next_tls_batch();
  void wait_writable();
  void on_written(const boost::system::error_code& error, size_t bytes);
  bool has_unsent() const { return !queue_.empty() || !sending_.empty(); }
  void linger();
  void hang_up();
  void report_end();
  void drop();

  AsioLoop& loop_;
  boost::asio::ip::tcp::socket socket_;
  std::string peer_;
  State state_ = State::kOpen;
  bool is_reading_ = false;
  bool is_writing_ = false;  // or, with TLS, it waits for the socket to take more
  bool has_sent_ = false;
  std::unique_ptr<TlsSocket> tls_;
  TimerId linger_timer_ = 0;
  std::shared_ptr<Connection::Handlers>
      handlers_;                      // shared, because one may replace itself while it runs
  std::optional<Status> unreported_;  // why it ended; on_close has not come yet
  wire::FrameDecoder decoder_;
  std::vector<wire::SharedFrame> queue_;    // waits for the write in progress
  std::vector<wire::SharedFrame> sending_;  // the write in progress; with TLS at most one
  size_t written_bytes_ = 0;                // with TLS: of sending_
  size_t queued_bytes_ = 0;                 // of both
};

}  // namespace lockstep::rpc
