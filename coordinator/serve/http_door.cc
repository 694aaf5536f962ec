#include "coordinator/serve/http_door.h"

#include <utility>

namespace lockstep::coordinator {

Status HttpDoor::open(const rpc::Address& wanted, bool trains_already) {
  wanted_ = wanted;
  auto there = serve_(wanted);
  if (there.is_ok()) {
    server_ = std::move(*there);
    return Status::ok();
  }
  if (!trains_already) return there.status();
  auto elsewhere = serve_({wanted.host, 0});
  if (elsewhere.is_ok()) server_ = std::move(*elsewhere);
  const std::string now = server_ ? "until it is free, HTTP is at " + rpc::to_string(address())
                                  : "there is no HTTP until it is free";
  logger_.warn("http_port_taken", there.status().message() + ". Training goes on; " + now,
               {{"wanted", rpc::to_string(wanted)}});
  if (wanted.port != 0) timer_ = loop_.call_after(kRetryMs, [this] { try_again(); });
  return Status::ok();
}

void HttpDoor::try_again() {
  auto there = serve_(wanted_);
  if (!there.is_ok()) {
    timer_ = loop_.call_after(kRetryMs, [this] { try_again(); });
    return;
  }
  server_ = std::move(*there);
  logger_.info("http_port_back", "HTTP is at " + rpc::to_string(address()) + " again");
  on_moved_();
}

}  // namespace lockstep::coordinator
