#include "comm/link/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/limits.h"
#include "comm/net/socket.h"

namespace lockstep::link {
namespace {

constexpr int64_t kHeldMs = 120'000;  // a proven connection waits for our connect()
constexpr size_t kHeldConnections = 4096;
constexpr int kIdlePollMs = 1'000;  // an expired connection is dropped at most this late

}  // namespace

// A connection that has not proven itself yet.
struct Acceptor::Stranger {
  Crowd::Id id = 0;
  Stream stream;
  short awaits = POLLIN;
  bool over_unix = false;
  bool is_proven = false;
  bool challenged = false;
  int64_t drop_at_ms = 0;
  Hello hello;
  Nonce nonce = {};
  std::string token;  // the token of the challenge
  size_t received = 0;
  char buffer[sizeof(Hello)] = {};
};

Acceptor::Acceptor(const Purpose& purpose, rpc::Token token, std::shared_ptr<rpc::TlsIdentity> tls,
                   Descriptor unix_listener, Descriptor tcp_listener, Descriptor wake)
    : purpose_(purpose),
      token_(std::move(token)),
      tls_(std::move(tls)),
      unix_listener_(std::move(unix_listener)),
      tcp_listener_(std::move(tcp_listener)),
      wake_(std::move(wake)),
      thread_([this] { run(); }) {}

Acceptor::~Acceptor() {
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Acceptor::refuse_below(Generation oldest) {
  std::lock_guard lock(mutex_);
  oldest_ = std::max(oldest_, oldest);
  for (auto it = arrivals_.begin(); it != arrivals_.end();) {
    if (it->hello.generation >= oldest_) {
      ++it;
      continue;
    }
    turn_away(*it, Welcome::kOldGeneration, oldest_);
    it = arrivals_.erase(it);
  }
  changed_.notify_all();
}

Result<Arrival> Acceptor::wait_for(Generation generation, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (oldest_ > generation) {
      return Status(Code::kAborted,
                    "generation " + std::to_string(generation) + " was closed while connecting");
    }
    const auto found = std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& a) {
      return a.hello.generation == generation;
    });
    if (found != arrivals_.end()) {
      Arrival arrival = std::move(*found);
      arrivals_.erase(found);
      return arrival;
    }
    const int64_t left = deadline.left_ms();
    if (left <= 0) return Status(Code::kTimeout, "peers did not connect in time");
    changed_.wait_for(lock, std::chrono::milliseconds(left));
  }
}

void Acceptor::turn_away(Arrival& arrival, Welcome why, Generation ours) {
  const Verdict verdict = {why, 0, 0, ours};
  (void)arrival.stream.try_send(&verdict, sizeof verdict);
}

void Acceptor::run() {
  std::list<Stranger> strangers;
  while (poll_once(&strangers) >= 0) drop_expired(&strangers);
}

// Negative if it is time to stop.
int Acceptor::poll_once(std::list<Stranger>* strangers) {
  // A listener stays readable while its connections cannot be accepted. Polling it again at once
  // would keep a core busy until there are descriptors. poll() skips negative descriptors.
  const int64_t pause_ms = accept_again_at_ms_ - SystemClock().monotonic_ms();
  const bool accepts = pause_ms <= 0;
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0},
                             {accepts ? unix_listener_.get() : -1, POLLIN, 0},
                             {accepts ? tcp_listener_.get() : -1, POLLIN, 0}};
  for (const Stranger& stranger : *strangers)
    fds.push_back({stranger.stream.fd(), stranger.awaits, 0});
  const int wait_ms = accepts ? kIdlePollMs : static_cast<int>(pause_ms);
  if (poll(fds.data(), fds.size(), wait_ms) <= 0) return 0;
  if (fds[0].revents != 0) return -1;
  size_t i = 3;
  for (auto it = strangers->begin(); it != strangers->end(); ++i) {
    if (fds[i].revents == 0 || advance(&*it)) {
      ++it;
    } else {
      forget(*it);
      it = strangers->erase(it);
    }
  }
  if (fds[1].revents != 0) accept_from(unix_listener_, true, strangers);
  if (fds[2].revents != 0) accept_from(tcp_listener_, false, strangers);
  return 1;
}

void Acceptor::accept_from(const Descriptor& listener, bool is_unix,
                           std::list<Stranger>* strangers) {
  for (;;) {
    Descriptor fd = accept_one(listener.get());
    if (!fd.is_open()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) {  // EMFILE, ENFILE: only time helps
        accept_again_at_ms_ = SystemClock().monotonic_ms() + limits::kAcceptRetryMs;
      }
      return;
    }
    if (is_unix && !peer_is_same_user(fd.get())) continue;
    // At each door for itself: a crowd on the network must not push out a peer on this host.
    Crowd& crowd = is_unix ? on_this_host_ : on_the_network_;
    if (crowd.size() >= limits::kUnauthenticatedConnections) {
      const Crowd::Id first = crowd.first_to_go();
      crowd.remove(first);
      strangers->remove_if([first](const Stranger& s) { return s.id == first; });
    }
    Stranger& stranger = strangers->emplace_back();
    stranger.id = ++last_stranger_;
    crowd.add(stranger.id, is_unix ? "" : host_of(rpc::peer_name(fd.get())),
              SystemClock().monotonic_ms());
    stranger.stream =
        Stream::accepted(std::move(fd), is_unix || tls_ == nullptr ? nullptr : tls_->context());
    stranger.over_unix = is_unix;
    stranger.drop_at_ms = SystemClock().monotonic_ms() + limits::kAuthDeadlineMs;
  }
}

bool Acceptor::advance(Stranger* stranger) {
  for (;;) {
    const size_t wanted = stranger->challenged ? sizeof(Proof) : sizeof(Hello);
    const rpc::IoResult received = stranger->stream.try_receive(
        stranger->buffer + stranger->received, wanted - stranger->received);
    switch (received.state) {
      case rpc::IoResult::State::kDone:
        break;
      case rpc::IoResult::State::kWantsRead:
        stranger->awaits = POLLIN;
        return true;
      case rpc::IoResult::State::kWantsWrite:
        stranger->awaits = POLLOUT;
        return true;
      default:
        return false;
    }
    stranger->received += received.bytes;
    if (stranger->received < wanted) continue;
    stranger->received = 0;
    if (!answer(stranger)) return false;
  }
}

// Answers a Hello, then a Proof. False after the last answer.
bool Acceptor::answer(Stranger* stranger) {
  if (!stranger->challenged) {
    std::memcpy(&stranger->hello, stranger->buffer, sizeof(Hello));
    if (stranger->hello.magic != purpose_.magic || stranger->hello.version != purpose_.version) {
      return false;
    }
    stranger->challenged = true;
    stranger->nonce = new_nonce();
    stranger->token = token_.newest();
    const Challenge challenge = {
        stranger->nonce, acceptor_proof(purpose_, stranger->token, stranger->hello, stranger->nonce,
                                        stranger->stream.binding())};
    return stranger->stream.try_send(&challenge, sizeof challenge).bytes == sizeof challenge;
  }
  const Digest256 expected = initiator_proof(purpose_, stranger->token, stranger->hello,
                                             stranger->nonce, stranger->stream.binding());
  const std::string_view given(stranger->buffer, sizeof(Proof));
  if (equal_constant_time(given, {reinterpret_cast<const char*>(expected.data()), 32})) {
    stranger->is_proven = true;
    admit(stranger);
  }
  return false;
}

void Acceptor::admit(Stranger* stranger) {
  Arrival arrival;
  arrival.stream = std::move(stranger->stream);
  arrival.hello = stranger->hello;
  arrival.over_unix = stranger->over_unix;
  arrival.drop_at_ms = SystemClock().monotonic_ms() + kHeldMs;
  std::lock_guard lock(mutex_);
  if (arrival.hello.generation < oldest_) {
    turn_away(arrival, Welcome::kOldGeneration, oldest_);
    return;
  }
  // A member that tries again has given up its earlier connection.
  arrivals_.remove_if(
      [&](const Arrival& other) { return other.hello.from_member == arrival.hello.from_member; });
  if (arrivals_.size() >= kHeldConnections) arrivals_.pop_front();
  arrivals_.push_back(std::move(arrival));
  changed_.notify_all();
}

void Acceptor::forget(const Stranger& stranger) {
  (stranger.over_unix ? on_this_host_ : on_the_network_).remove(stranger.id, stranger.is_proven);
}

void Acceptor::drop_expired(std::list<Stranger>* strangers) {
  const int64_t now = SystemClock().monotonic_ms();
  strangers->remove_if([&](const Stranger& stranger) {
    if (stranger.drop_at_ms > now) return false;
    forget(stranger);
    return true;
  });
  std::lock_guard lock(mutex_);
  arrivals_.remove_if([&](const Arrival& arrival) { return arrival.drop_at_ms <= now; });
}

}  // namespace lockstep::link
