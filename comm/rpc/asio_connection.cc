#include "comm/rpc/asio_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <string_view>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/limits.h"
#include "comm/net/socket.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kReadBytes = 64 * kKib;
constexpr size_t kSharedBytes = 16 * kKib;  // frames from here on are not copied

Status broken(const boost::system::error_code& error) {
  return Status(Code::kUnavailable, "the connection broke: " + error.message());
}

}  // namespace

AsioConnection::AsioConnection(AsioLoop& loop, boost::asio::ip::tcp::socket socket,
                               std::unique_ptr<TlsSocket> tls)
    : loop_(loop),
      socket_(std::move(socket)),
      peer_(peer_name(socket_.native_handle())),
      tls_(std::move(tls)),
      decoder_(limits::kFrameBytesBeforeAuth) {
  // Leaves with the first frame, or when reading starts.
  queue_.push_back(std::make_shared<const std::string>(wire::kPreamble));
  queued_bytes_ = wire::kPreamble.size();
}

void AsioConnection::set_handlers(Connection::Handlers handlers) {
  if (state_ != State::kOpen && !unreported_) return;
  handlers_ = std::make_shared<Connection::Handlers>(std::move(handlers));
  if (unreported_) return loop_.post([self = shared_from_this()] { self->report_end(); });
  wait_readable();
  write();
}

void AsioConnection::send(wire::SharedFrame frame) {
  if (state_ != State::kOpen) return;
  const size_t bytes = frame->size();
  if (queued_bytes_ + bytes > limits::kSendQueueBytes) {
    end(Status(Code::kUnavailable, "the peer does not read: " + std::to_string(queued_bytes_) +
                                       " bytes wait for it, the limit is " +
                                       std::to_string(limits::kSendQueueBytes)));
    return;
  }
  has_sent_ = true;
  queued_bytes_ += bytes;
  queue_.push_back(std::move(frame));
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
  if (!has_unsent()) return linger();
  write();
}

// Reading uses no buffer of the connection's own, so an idle connection costs no memory for it.
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
  const IoResult got = read_some(chunk, sizeof chunk);
  if (got.state == IoResult::State::kBroken) return end(got.why);
  if (got.state == IoResult::State::kEnd) {
    return end(Status(Code::kUnavailable, decoder_.at_boundary()
                                              ? "the peer closed the connection"
                                              : "the peer closed the connection inside a frame"));
  }
  if (got.state == IoResult::State::kDone && state_ == State::kOpen) deliver({chunk, got.bytes});
  if (got.state == IoResult::State::kWantsWrite) wait_writable();
  if (tls_ && state_ != State::kLingering) write_tls();  // it may have waited for the peer's word
  if (state_ != State::kOver) wait_readable();
}

IoResult AsioConnection::read_some(char* out, size_t bytes) {
  if (tls_) return tls_->read(out, bytes);
  boost::system::error_code error;
  const size_t got = socket_.read_some(boost::asio::buffer(out, bytes), error);
  if (!error) return {IoResult::State::kDone, got};
  if (error == boost::asio::error::would_block) return {IoResult::State::kWantsRead};
  if (error == boost::asio::error::eof) return {IoResult::State::kEnd};
  return {IoResult::State::kBroken, 0, broken(error)};
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
  if (tls_) return write_tls();
  if (is_writing_ || queue_.empty()) return;
  is_writing_ = true;
  sending_ = std::exchange(queue_, {});
  std::vector<boost::asio::const_buffer> buffers;
  buffers.reserve(sending_.size());
  for (const wire::SharedFrame& frame : sending_) buffers.push_back(boost::asio::buffer(*frame));
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

// Puts waiting small frames into one record. A large frame goes as it is, because many connections
// may share it.
wire::SharedFrame AsioConnection::next_tls_batch() {
  if (queue_.front()->size() >= kSharedBytes) {
    wire::SharedFrame frame = std::move(queue_.front());
    queue_.erase(queue_.begin());
    return frame;
  }
  std::string batch;
  auto end = queue_.begin();
  for (; end != queue_.end() && (*end)->size() < kSharedBytes; ++end) batch += **end;
  queue_.erase(queue_.begin(), end);
  return std::make_shared<const std::string>(std::move(batch));
}

// Sends as much as possible now. Bytes that wait for the peer's word follow after the next read.
void AsioConnection::write_tls() {
  while (!is_writing_ && has_unsent()) {
    if (sending_.empty()) {
      sending_.push_back(next_tls_batch());
      written_bytes_ = 0;
    }
    const std::string_view rest = std::string_view(*sending_.front()).substr(written_bytes_);
    const IoResult put = tls_->write(rest.data(), rest.size());
    if (put.state == IoResult::State::kWantsRead) return;
    if (put.state == IoResult::State::kWantsWrite) return wait_writable();
    if (put.state == IoResult::State::kBroken) return end(put.why);
    if (put.state == IoResult::State::kEnd)
      return end(Status(Code::kUnavailable, "the peer closed the connection"));
    written_bytes_ += put.bytes;
    queued_bytes_ -= put.bytes;
    if (put.bytes == rest.size()) sending_.clear();
  }
  if (state_ == State::kClosing && !has_unsent()) linger();
}

// TLS may want the socket writable for a read, too.
void AsioConnection::wait_writable() {
  if (is_writing_) return;
  is_writing_ = true;
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->is_writing_ = false;
                       if (self->state_ == State::kOver || !self->tls_) return;
                       if (error) return self->end(broken(error));
                       self->on_readable();
                     });
}

void AsioConnection::linger() {
  if (tls_) tls_->say_end();
  state_ = State::kLingering;
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

// After TLS has failed: lets the alert arrive, and understands nothing any more.
void AsioConnection::hang_up() {
  tls_.reset();
  queue_.clear();
  sending_.clear();
  queued_bytes_ = 0;
  if (linger_timer_ == 0)
    linger_timer_ =
        loop_.call_after(limits::kLingerMs, [self = shared_from_this()] { self->drop(); });
  linger();
  wait_readable();
}

void AsioConnection::end(Status why) {
  const bool was_open = state_ == State::kOpen;
  if (tls_ && why.code() == Code::kRefused && !loop_.is_dying()) {
    hang_up();
  } else {
    drop();
  }
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
  tls_.reset();
  if (linger_timer_ != 0) loop_.cancel(linger_timer_);
  queue_.clear();
  queued_bytes_ = 0;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace lockstep::rpc
