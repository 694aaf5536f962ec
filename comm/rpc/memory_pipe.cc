#include "comm/rpc/memory_pipe.h"

#include <algorithm>

#include "comm/base/limits.h"

namespace lockstep::rpc {

MemoryEnd::MemoryEnd(MemoryNetworkState& network, std::string node, std::string other_node,
                     std::string peer)
    : network_(network),
      node_(std::move(node)),
      other_node_(std::move(other_node)),
      peer_(std::move(peer)),
      decoder_(limits::kFrameBytesBeforeAuth) {}

void MemoryEnd::set_handlers(Connection::Handlers handlers) {
  if (!is_open_ && !unreported_) return;
  const bool is_first = handlers_ == nullptr;
  handlers_ = std::make_shared<Connection::Handlers>(std::move(handlers));
  if (unreported_) {
    post_end();
    return;
  }
  if (!is_first) return;
  if (!has_sent_) put(std::string(wire::kPreamble));
  if (const auto other = other_.lock())
    other->schedule_pump(0);  // for frames that waited for a reader
}

void MemoryEnd::send(const wire::SharedFrame& frame) {
  if (!is_open_) return;
  const size_t bytes = frame->size();
  if (queued_bytes_ + bytes > limits::kSendQueueBytes) {
    end(Status(Code::kUnavailable, "the peer does not read: " + std::to_string(queued_bytes_) +
                                       " bytes wait for it, the limit is " +
                                       std::to_string(limits::kSendQueueBytes)));
    return;
  }
  if (network_.tap) network_.tap(node_, other_node_, wire::unshare_frame(frame));
  if (!std::exchange(has_sent_, true) && !handlers_) put(std::string(wire::kPreamble));
  put(*frame);
}

void MemoryEnd::put(std::string bytes) {
  const int64_t delay_ms = network_.delay_ms(node_, other_node_);
  int64_t due_ms = network_.loop.now_ms() + delay_ms;
  if (!outbox_.empty()) due_ms = std::max(due_ms, outbox_.back().due_ms);
  queued_bytes_ += bytes.size();
  outbox_.push_back({due_ms, std::move(bytes)});
  schedule_pump(due_ms - network_.loop.now_ms());
}

void MemoryEnd::schedule_pump(int64_t delay_ms) {
  network_.loop_of(other_node_).call_after(delay_ms, [self = weak_from_this()] {
    if (const auto end = self.lock()) end->pump();
  });
}

void MemoryEnd::pump() {
  while (!outbox_.empty() && outbox_.front().due_ms <= network_.loop.now_ms()) {
    if (network_.is_partitioned(node_, other_node_)) return;
    const auto other = other_.lock();
    if (other && other->is_open_ && !other->handlers_) return;  // set_handlers() pumps again
    const Chunk chunk = std::move(outbox_.front());
    outbox_.pop_front();
    queued_bytes_ -= chunk.bytes.size();
    if (other) other->take(chunk.bytes);
  }
}

void MemoryEnd::take(std::string_view bytes) {
  if (is_open_ && bytes.empty())
    return end(Status(Code::kUnavailable, "the peer closed the connection"));
  while (is_open_) {
    auto frame = decoder_.next(&bytes);
    if (!frame.is_ok()) return end(frame.status());
    if (!frame->has_value()) return;
    const auto handlers = handlers_;
    handlers->on_frame(std::move(**frame));
  }
}

void MemoryEnd::close() {
  handlers_.reset();
  unreported_.reset();
  if (!is_open_) return;
  is_open_ = false;
  put("");
}

void MemoryEnd::end(Status why) {
  if (!is_open_) return;
  outbox_.clear();
  queued_bytes_ = 0;
  is_open_ = false;
  put("");
  unreported_ = std::move(why);
  post_end();
}

void MemoryEnd::post_end() {
  network_.loop_of(node_).post([self = weak_from_this()] {
    if (const auto end = self.lock()) end->report_end();
  });
}

void MemoryEnd::report_end() {
  if (!handlers_ || !unreported_) return;
  const auto handlers = std::exchange(handlers_, nullptr);
  const auto why = std::exchange(unreported_, std::nullopt);
  handlers->on_close(*why);
}

void MemoryEnd::vanish(bool deliver) {
  if (deliver) return close();
  handlers_.reset();
  unreported_.reset();
  outbox_.clear();
  queued_bytes_ = 0;
  is_open_ = false;
}

std::pair<std::shared_ptr<MemoryEnd>, std::shared_ptr<MemoryEnd>> MemoryNetworkState::make_pipe(
    const std::string& from, const std::string& to, const Address& address) {
  std::erase_if(ends, [](const auto& end) { return end->is_done() && end.use_count() == 1; });
  const std::string caller = from + ":" + std::to_string(++last_port);
  auto near = std::make_shared<MemoryEnd>(*this, from, to, to_string(address));
  auto far = std::make_shared<MemoryEnd>(*this, to, from, caller);
  near->join(far);
  far->join(near);
  ends.push_back(near);
  ends.push_back(far);
  return {near, far};
}

}  // namespace lockstep::rpc
