// Chooses where a coordinator serves HTTP. Watching never stops training: in a run that trains
// already, a port that another program has taken is no reason to end.
//
//   open() ──▶ the wanted address ──▶ serves there
//                 │ taken, and the run trains already
//                 └▶ any other port; the log says so ──▶ every kRetryMs: the wanted address again
//                                                          └ free ──▶ serves there; on_moved
//
// Thread-safety: everything on the loop's thread. No callback comes after the destructor.
#pragma once

#include <functional>
#include <memory>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/http/http_server.h"
#include "comm/rpc/transport.h"

namespace lockstep::coordinator {

class HttpDoor {
 public:
  static constexpr int64_t kRetryMs = 5'000;

  using Serve = std::function<Result<std::unique_ptr<http::HttpServer>>(const rpc::Address&)>;

  // `serve` starts a server at an address, `on_moved` hears of another address than open() gave.
  HttpDoor(rpc::Loop& loop, Logger& logger, Serve serve, std::function<void()> on_moved)
      : loop_(loop), logger_(logger), serve_(std::move(serve)), on_moved_(std::move(on_moved)) {}
  ~HttpDoor() { loop_.cancel(timer_); }
  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

  // An error only if the run does not train yet.
  Status open(const rpc::Address& wanted, bool trains_already);

  // The address with the real port, or the wanted address while no server runs.
  rpc::Address address() const { return server_ ? server_->address() : wanted_; }

 private:
  void try_again();

  rpc::Loop& loop_;
  Logger& logger_;
  Serve serve_;
  std::function<void()> on_moved_;
  rpc::Address wanted_;
  std::unique_ptr<http::HttpServer> server_;
  rpc::TimerId timer_ = 0;
};

}  // namespace lockstep::coordinator
