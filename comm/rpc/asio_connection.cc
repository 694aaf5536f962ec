#include "comm/rpc/asio_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "comm/base/limits.h"
#include "comm/rpc/socket.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

Status broken(const boost::system::error_code& error) {
  return Status(Code::kUnavailable, "the connection broke: " + error.message());
}

}  // namespace

AsioConnection::AsioConnection(AsioLoop& loop, boost::asio::ip::tcp::socket socket)
    : loop_(loop),
      socket_(std::move(socket)),
      peer_(peer_name(socket_.native_handle())),
      decoder_(limits::kFrameBytesBeforeAuth) {
  queue_.emplace_back(wire::kPreamble);  // leaves with the first frame, or when reading starts
  queued_bytes_ = wire::kPreamble.size();
}

void AsioConnection::set_handlers(Connection::Handlers handlers) {
  if (state_ != State::kOpen && !unreported_) return;
  handlers_ = std::make_shared<Connection::Handlers>(std::move(handlers));
  if (unreported_) return loop_.post([self = shared_from_this()] { self->report_end(); });
  wait_readable();
  write();
}

void AsioConnection::send(wire::Frame frame) {
  if (state_ != State::kOpen) return;
  const size_t bytes = wire::kFrameHeaderBytes + frame.payload.size();
  if (queued_bytes_ + bytes > limits::kSendQueueBytes) {
    end(Status(Code::kUnavailable, "the peer does not read: " + std::to_string(queued_bytes_) +
                                       " bytes wait for it, the limit is " +
                                       std::to_string(limits::kSendQueueBytes)));
    return;
  }
  has_sent_ = true;
  queued_bytes_ += bytes;
  queue_.push_back(wire::encode_frame(frame));
  write();
}

void AsioConnection::close() {
  handlers_.reset();
  unreported_.reset();
  if (state_ != State::kOpen) return;
  if (!has_sent_ || loop_.is_dying()) return drop();
  state_ = State::kClosing;
  linger_timer_ =
      loop_.call_after(limits::kLingerMs, [self = shared_from_this()] { self->drop(); });
  wait_readable();
  if (is_writing_) return;
  if (queue_.empty()) return linger();
  write();
}

// Nothing is read into a buffer of the connection's own, so an idle one costs no memory for it.
void AsioConnection::wait_readable() {
  if (is_reading_) return;
  is_reading_ = true;
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->is_reading_ = false;
                       if (self->state_ == State::kOver) return;
                       if (error) return self->end(broken(error));
                       self->on_readable();
                     });
}

void AsioConnection::on_readable() {
  char chunk[kReadBytes];
  boost::system::error_code error;
  const size_t bytes = socket_.read_some(boost::asio::buffer(chunk), error);
  if (error == boost::asio::error::would_block) return wait_readable();
  if (error == boost::asio::error::eof) {
    return end(Status(Code::kUnavailable, decoder_.at_boundary()
                                              ? "the peer closed the connection"
                                              : "the peer closed the connection inside a frame"));
  }
  if (error) return end(broken(error));
  if (state_ == State::kOpen) deliver({chunk, bytes});
  if (state_ != State::kOver) wait_readable();
}

void AsioConnection::deliver(std::string_view bytes) {
  while (state_ == State::kOpen) {
    auto frame = decoder_.next(&bytes);
    if (!frame.is_ok()) return end(frame.status());
    if (!frame->has_value()) return;
    const auto handlers = handlers_;
    handlers->on_frame(std::move(**frame));
  }
}

void AsioConnection::write() {
  if (is_writing_ || queue_.empty()) return;
  is_writing_ = true;
  sending_ = std::exchange(queue_, {});
  std::vector<boost::asio::const_buffer> buffers;
  buffers.reserve(sending_.size());
  for (const std::string& bytes : sending_) buffers.push_back(boost::asio::buffer(bytes));
  boost::asio::async_write(
      socket_, buffers,
      [self = shared_from_this()](const boost::system::error_code& error, size_t bytes) {
        self->on_written(error, bytes);
      });
}

void AsioConnection::on_written(const boost::system::error_code& error, size_t bytes) {
  is_writing_ = false;
  sending_.clear();
  queued_bytes_ -= bytes;
  if (state_ == State::kOver) return;
  if (error) return end(broken(error));
  if (!queue_.empty()) return write();
  if (state_ == State::kClosing) linger();
}

void AsioConnection::linger() {
  state_ = State::kLingering;
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

void AsioConnection::end(Status why) {
  const bool was_open = state_ == State::kOpen;
  drop();
  if (!was_open) return;
  unreported_ = std::move(why);
  loop_.post([self = shared_from_this()] { self->report_end(); });
}

// Not before there are handlers, and not after close().
void AsioConnection::report_end() {
  if (!handlers_ || !unreported_) return;
  const auto handlers = std::exchange(handlers_, nullptr);
  const auto why = std::exchange(unreported_, std::nullopt);
  handlers->on_close(*why);
}

void AsioConnection::drop() {
  state_ = State::kOver;
  if (linger_timer_ != 0) loop_.cancel(linger_timer_);
  queue_.clear();
  queued_bytes_ = 0;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace lockstep::rpc
