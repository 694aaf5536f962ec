#include "comm/rpc/tls_door.h"

#include <poll.h>
#include <sys/socket.h>

#include "comm/base/clock.h"
#include "comm/net/socket.h"

namespace lockstep::rpc {
namespace {

bool has_hung_up(int fd) {
  pollfd look = {.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) == 1;
}

}  // namespace

void TlsDoor::put(Callers& into, CallerId id, std::shared_ptr<Caller> caller) {
  into.crowd.add(id, host_of(peer_name(caller->socket.native_handle())), loop_.now_ms());
  into.by_id.emplace(id, std::move(caller));
}

// Null: it is not there.
std::shared_ptr<TlsDoor::Caller> TlsDoor::take(Callers& from, CallerId id, bool is_proven) {
  auto caller = from.by_id.extract(id);
  from.crowd.remove(id, is_proven);
  return caller.empty() ? nullptr : std::move(caller.mapped());
}

void TlsDoor::knock(boost::asio::ip::tcp::socket socket) {
  make_room();
  if (!enter_) return;
  const CallerId id = ++last_id_;
  auto caller = std::make_shared<Caller>(Caller{std::move(socket), loop_.now_ms(), 0});
  put(silent_, id, caller);
  caller->deadline = loop_.call_after(limits::kAuthDeadlineMs, [weak = weak_from_this(), id] {
    const auto self = weak.lock();
    if (!self) return;
    self->turn_away(self->silent_, id,
                    Status(Code::kTimeout, "it did not begin TLS within " +
                                               std::to_string(limits::kAuthDeadlineMs) + " ms"));
  });
  listen_to(id, caller);
}

TlsDoor::Callers& TlsDoor::who_makes_room() {
  const auto& silent = silent_.by_id;
  const int64_t stubborn_ms = loop_.now_ms() - limits::kTlsPromptMs;
  if (!silent.empty() && silent.begin()->second->since_ms <= stubborn_ms) return silent_;
  if (!lines_[kStrangers].waiting.by_id.empty()) return lines_[kStrangers].waiting;
  return silent.empty() ? lines_[kKnocked].waiting : silent_;
}

void TlsDoor::make_room() {
  size_t callers = silent_.by_id.size();
  for (const Line& line : lines_) callers += line.waiting.by_id.size();
  if (!enter_ || callers < most_callers_) return;
  Callers& from = who_makes_room();
  const CallerId first = from.crowd.first_to_go();
  const int64_t age_ms = loop_.now_ms() - from.by_id.at(first)->since_ms;
  turn_away(from, first,
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
  const auto found = silent_.by_id.find(id);
  if (found == silent_.by_id.end()) return;
  const bool is_known = has_knocked(found->second->socket.native_handle());
  auto caller = take(silent_, id, is_known);
  loop_.cancel(caller->deadline);
  put(lines_[is_known ? kKnocked : kStrangers].waiting, id, std::move(caller));
  call_next();
}

// Takes the knock out of the socket, right or wrong: TLS begins after it. It comes as one piece,
// because it is the first thing that is sent; half of one is no TLS either.
bool TlsDoor::has_knocked(int fd) {
  char bytes[kKnockBytes];
  const ssize_t seen = ::recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
  if (seen != static_cast<ssize_t>(sizeof bytes) || !is_knock({bytes, sizeof bytes})) return false;
  if (::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) != seen) return false;
  return knocks_.accept({bytes, sizeof bytes}, SystemClock().wall_ms());
}

void TlsDoor::turn_away(Callers& from, CallerId id, Status why) {
  const auto gone = take(from, id);
  if (!gone) return;
  loop_.cancel(gone->deadline);
  enter(std::move(gone->socket), std::move(why));
}

// Forgets handshakes that take too long. The server's deadline ends them.
bool TlsDoor::is_room_in_hand(Line& line) {
  const int64_t slow_ms = loop_.now_ms() - limits::kTlsPromptMs;
  std::erase_if(line.in_hand, [&](const auto& entry) { return entry.second <= slow_ms; });
  return line.in_hand.size() < limits::kTlsHandshakes;
}

// The line whose turn it is. Null: no caller waits, or the waiting ones have to wait longer.
TlsDoor::Line* TlsDoor::next_line() {
  for (Line& line : lines_)
    if (!line.waiting.by_id.empty() && is_room_in_hand(line)) return &line;
  return nullptr;
}

void TlsDoor::call_next() {
  if (is_called_ || !enter_) return;
  if (next_line() == nullptr) {
    for (const Line& line : lines_)
      if (!line.waiting.by_id.empty()) wake_at(line.in_hand.begin()->second + limits::kTlsPromptMs);
    return;
  }
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
  Line* const line = enter_ ? next_line() : nullptr;
  if (line == nullptr) return;
  const CallerId newest = line->waiting.by_id.rbegin()->first;
  if (has_hung_up(line->waiting.by_id.rbegin()->second->socket.native_handle())) {
    turn_away(line->waiting, newest,
              Status(Code::kUnavailable, "it hung up while it waited for its turn"));
    return call_next();
  }
  const auto caller = take(line->waiting, newest);
  const uint64_t turn = ++last_turn_;
  const auto which = static_cast<size_t>(line - lines_.data());
  line->in_hand[turn] = loop_.now_ms();
  enter(std::move(caller->socket), Turn(nullptr, [weak = weak_from_this(), which, turn](void*) {
          if (const auto self = weak.lock()) self->finished(which, turn);
        }));
  call_next();
}

// The handler may close the door.
void TlsDoor::enter(boost::asio::ip::tcp::socket socket, Result<Turn> turn) {
  const Enter told = enter_;
  told(std::move(socket), std::move(turn));
}

void TlsDoor::finished(size_t line, uint64_t turn) {
  lines_[line].in_hand.erase(turn);
  call_next();
}

void TlsDoor::close() {
  enter_ = nullptr;
  loop_.cancel(wake_);
  for (const auto& [id, caller] : silent_.by_id) loop_.cancel(caller->deadline);
  silent_ = {};
  for (Line& line : lines_) line.waiting = {};
}

}  // namespace lockstep::rpc
