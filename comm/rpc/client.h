// A worker's or an agent's connection to the coordinator. It connects, proves the token, verifies
// the server's proof, and reconnects by itself after a loss, with growing, jittered pauses.
//
// Thread-safety: everything on the loop's thread, or before the loop runs.
//
// Invariants:
//  1. on_ready and on_lost alternate, on_ready first. on_message comes only between them.
//  2. on_failed is the last callback. It comes if the server has a forbidden address, or if the
//     client was not ready for `give_up_after_ms`. If the client was ready, on_lost comes before.
//     A refusal ends the client only with `refusal_is_final`: a server that refuses has proven
//     nothing.
//  3. Nothing is queued across a loss: the session above decides what to send again after on_ready.
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
  static constexpr int64_t kTroubleMs = 5'000;  // longer than a coordinator takes to start again
  static constexpr char kTroubleWords[] = "has tried to reach the coordinator for ";

  struct Options {
    // Called before every attempt, because a restarted coordinator has another port (see
    // coordinator.json). An error counts as a failed attempt.
    std::function<Result<Address>()> address;
    Token token;
    int64_t connect_timeout_ms = limits::kConnectTimeoutMs;
    int64_t first_backoff_ms = limits::kBackoffFirstMs;
    int64_t max_backoff_ms = limits::kBackoffMaxMs;
    int64_t give_up_after_ms = 0;  // not ready for this long; 0: never
    // The connection counts as lost after about this long without a whole frame; 0: never. Frames
    // that come while this process is stopped count.
    int64_t silence_ms = 0;
    bool refusal_is_final = false;  // for a command: its user reads why, and calls it again
    uint64_t jitter_seed = 0;       // any number of one's own, e.g. the pid
  };
  struct Handlers {
    std::function<void()> on_ready;
    std::function<void(wire::Envelope&&)> on_message;
    std::function<void(const Status&)> on_lost;    // the client is already trying again
    std::function<void(const Status&)> on_failed;  // the client has given up
    // The client does not believe the server, or the server does not believe the client. The client
    // keeps trying, so somebody can mend the cause. Called once for each reason; may be empty.
    std::function<void(const Status&)> on_distrust = {};
    // The client has tried for kTroubleMs or longer. Called once for each reason until it is ready;
    // may be empty.
    std::function<void(const Status&)> on_trouble = {};
  };

  // Starts the first attempt.
  RpcClient(Transport& transport, Options options, Handlers handlers);
  ~RpcClient();  // close()

  // kUnavailable if not ready, else the message is queued.
  Status send(const wire::Envelope& envelope);

  bool is_ready() const;

  // Why the last attempt failed; ok if none did since the client was ready.
  Status last_failure() const;

  // Delivers queued messages, then closes. No callback comes after it has returned.
  void close();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep::rpc
