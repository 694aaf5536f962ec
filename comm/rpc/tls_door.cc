#include "comm/rpc/tls_door.h"

#include <poll.h>

namespace lockstep::rpc {
namespace {

bool has_hung_up(int fd) {
  pollfd look = {.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) == 1;
}

}  // namespace

void TlsDoor::knock(boost::asio::ip::tcp::socket socket) {
  make_room();
  if (!enter_) return;
  const CallerId id = ++last_id_;
  auto caller = std::make_shared<Caller>(Caller{std::move(socket), loop_.now_ms(), 0});
  silent_.emplace(id, caller);
  caller->deadline = loop_.call_after(limits::kAuthDeadlineMs, [weak = weak_from_this(), id] {
    const auto self = weak.lock();
    if (!self) return;
    self->turn_away(self->silent_, self->silent_.find(id),
                    Status(Code::kTimeout, "it did not begin TLS within " +
                                               std::to_string(limits::kAuthDeadlineMs) + " ms"));
  });
  listen_to(id, caller);
}

void TlsDoor::make_room() {
  if (!enter_ || silent_.size() + waiting_.size() < most_callers_) return;
  Callers& from = silent_.empty() ? waiting_ : silent_;
  const auto oldest = from.begin();
  const int64_t age_ms = loop_.now_ms() - oldest->second->since_ms;
  turn_away(from, oldest,
            Status(Code::kUnavailable, "it had to make room after " + std::to_string(age_ms) +
                                           " ms: more than " + std::to_string(most_callers_) +
                                           " connections wait to begin TLS"));
}

void TlsDoor::listen_to(CallerId id, const std::shared_ptr<Caller>& caller) {
  caller->socket.async_wait(boost::asio::ip::tcp::socket::wait_read,
                            [weak = weak_from_this(), id](const boost::system::error_code& error) {
                              const auto self = weak.lock();
                              if (self && !error) self->on_word(id);
                            });
}

void TlsDoor::on_word(CallerId id) {
  auto caller = silent_.extract(id);
  if (caller.empty()) return;
  loop_.cancel(caller.mapped()->deadline);
  waiting_.insert(std::move(caller));
  call_next();
}

void TlsDoor::turn_away(Callers& from, Callers::iterator caller, Status why) {
  if (caller == from.end()) return;
  const auto gone = std::move(caller->second);
  from.erase(caller);
  loop_.cancel(gone->deadline);
  enter(std::move(gone->socket), std::move(why));
}

// Forgets handshakes that take too long. The server's deadline ends them.
bool TlsDoor::is_room_in_hand() {
  const int64_t slow_ms = loop_.now_ms() - limits::kTlsPromptMs;
  std::erase_if(in_hand_, [&](const auto& entry) { return entry.second <= slow_ms; });
  return in_hand_.size() < limits::kTlsHandshakes;
}

void TlsDoor::call_next() {
  if (is_called_ || waiting_.empty() || !enter_) return;
  if (!is_room_in_hand()) return wake_at(in_hand_.begin()->second + limits::kTlsPromptMs);
  is_called_ = true;
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->let_in();
  });
}

void TlsDoor::wake_at(int64_t when_ms) {
  if (wake_ != 0) return;
  wake_ = loop_.call_after(when_ms - loop_.now_ms(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->wake_ = 0;
    self->call_next();
  });
}

void TlsDoor::let_in() {
  is_called_ = false;
  if (waiting_.empty() || !enter_) return;
  const auto newest = std::prev(waiting_.end());
  if (has_hung_up(newest->second->socket.native_handle())) {
    turn_away(waiting_, newest,
              Status(Code::kUnavailable, "it hung up while it waited for its turn"));
    return call_next();
  }
  const auto caller = std::move(newest->second);
  waiting_.erase(newest);
  const uint64_t turn = ++last_turn_;
  in_hand_[turn] = loop_.now_ms();
  enter(std::move(caller->socket), Turn(nullptr, [weak = weak_from_this(), turn](void*) {
          if (const auto self = weak.lock()) self->finished(turn);
        }));
  call_next();
}

// The handler may close the door.
void TlsDoor::enter(boost::asio::ip::tcp::socket socket, Result<Turn> turn) {
  const Enter told = enter_;
  told(std::move(socket), std::move(turn));
}

void TlsDoor::finished(uint64_t turn) {
  in_hand_.erase(turn);
  call_next();
}

void TlsDoor::close() {
  enter_ = nullptr;
  loop_.cancel(wake_);
  for (const auto& [id, caller] : silent_) loop_.cancel(caller->deadline);
  silent_.clear();
  waiting_.clear();
}

}  // namespace lockstep::rpc
