// A worker's or an agent's line to the coordinator: connects, proves the token, verifies the
// server's proof, and comes back after a loss by itself, with growing, jittered pauses.
//
// Thread-safety: everything on the loop's thread, or before the loop runs.
//
// Invariants:
//  1. on_ready and on_lost alternate, on_ready first; on_message comes only between them.
//  2. on_failed is the last callback: the token was refused, the server could not prove it, the
//     address is not allowed, or `give_up_after_ms` passed without being ready. If it was ready,
//     on_lost has come before.
//  3. Nothing is queued across a loss: the session above decides what to say again after on_ready.
//  4. Handlers never run from inside a call of this class, and never after close() or the
//     destructor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/rpc/transport.h"
#include "comm/tls/run_token.h"

namespace lockstep::wire {
class Envelope;
}

namespace lockstep::rpc {

class RpcClient {
 public:
  struct Options {
    // Asked before every attempt, because a restarted coordinator has another port (it stands in
    // coordinator.json). An error counts as a failed attempt.
    std::function<Result<Address>()> address;
    Token token;
    int64_t connect_timeout_ms = limits::kConnectTimeoutMs;
    int64_t first_backoff_ms = limits::kBackoffFirstMs;
    int64_t max_backoff_ms = limits::kBackoffMaxMs;
    int64_t give_up_after_ms = 0;  // without being ready; 0: never
    int64_t silence_ms = 0;    // no whole frame for about so long: it is lost; 0: never. What comes
                               // while this process is stopped counts
    uint64_t jitter_seed = 0;  // something of one's own, e.g. the pid
  };
  struct Handlers {
    std::function<void()> on_ready;
    std::function<void(wire::Envelope&&)> on_message;
    std::function<void(const Status&)> on_lost;    // it is already trying again
    std::function<void(const Status&)> on_failed;  // it has given up
    // It does not believe who answers, or is not believed: what is wrong can be mended while it
    // tries on. Once for each reason; may be empty.
    std::function<void(const Status&)> on_distrust = {};
  };

  // Starts the first attempt.
  RpcClient(Transport& transport, Options options, Handlers handlers);
  ~RpcClient();  // close()

  // kUnavailable when not ready; otherwise queued.
  Status send(const wire::Envelope& envelope);

  bool is_ready() const;

  // Delivers what is queued, then closes; no callback after it returned.
  void close();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep::rpc
