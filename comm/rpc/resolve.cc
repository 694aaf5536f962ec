#include "comm/rpc/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/base/thread_name.h"

namespace lockstep::rpc {
namespace {

// The state that the lookup and its thread share: the loop, until the lookup has left.
struct Desk {
  std::mutex mutex;
  Loop* loop = nullptr;
};

std::string numbers_of(const addrinfo& found) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes =
      found.ai_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(found.ai_addr)->sin_addr)
          : static_cast<const void*>(&reinterpret_cast<sockaddr_in6*>(found.ai_addr)->sin6_addr);
  return ::inet_ntop(found.ai_family, bytes, text, sizeof text) == nullptr ? "" : text;
}

Result<Address> look_up(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &first);
  if (error != 0)
    return Status(Code::kUnavailable,
                  "the name " + address.host + " does not resolve: " + ::gai_strerror(error),
                  Obstacle::kName);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(first, &::freeaddrinfo);
  for (const int family : {AF_INET, AF_INET6})
    for (const addrinfo* at = first; at != nullptr; at = at->ai_next)
      if (at->ai_family == family) return Address{numbers_of(*at), address.port};
  return Status(Code::kUnavailable, "the name " + address.host + " has no IP address",
                Obstacle::kName);
}

class Lookup final : public std::enable_shared_from_this<Lookup> {
 public:
  Lookup(Loop& loop, const Address& address, ResolveHandler on_resolved)
      : loop_(loop), address_(address), on_resolved_(std::move(on_resolved)) {
    desk_->loop = &loop;
  }
  ~Lookup() { leave(); }

  void start(int64_t timeout_ms) {
    timer_ = loop_.call_after(timeout_ms, [self = shared_from_this(), timeout_ms] {
      self->finish(Status(Code::kTimeout,
                          "the name " + self->address_.host + " was not resolved within " +
                              std::to_string(timeout_ms) + " ms",
                          Obstacle::kName));
    });
    try {
      std::thread([desk = desk_, address = address_, weak = weak_from_this()] {
        name_this_thread("resolve");
        auto found = look_up(address);
        const std::lock_guard lock(desk->mutex);
        if (desk->loop == nullptr) return;
        desk->loop->post([weak, found = std::move(found)] {
          if (const auto self = weak.lock()) self->finish(found);
        });
      }).detach();
    } catch (const std::system_error& error) {
      loop_.post([self = shared_from_this(), what = std::string(error.what())] {
        self->finish(
            Status(Code::kUnavailable, "cannot start a thread to resolve the name: " + what));
      });
    }
  }

 private:
  void leave() {
    const std::lock_guard lock(desk_->mutex);
    desk_->loop = nullptr;
  }

  void finish(Result<Address> result) {
    const auto self = shared_from_this();  // the timer may hold the last reference
    if (!on_resolved_) return;
    leave();
    loop_.cancel(timer_);
    std::exchange(on_resolved_, nullptr)(std::move(result));
  }

  Loop& loop_;
  Address address_;
  ResolveHandler on_resolved_;
  std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  TimerId timer_ = 0;
};

}  // namespace

void resolve(Loop& loop, const Address& address, int64_t timeout_ms, ResolveHandler on_resolved) {
  std::make_shared<Lookup>(loop, address, std::move(on_resolved))->start(timeout_ms);
}

}  // namespace lockstep::rpc
