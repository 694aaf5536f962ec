// The coordinator's door. It accepts connections, admits only peers that prove the token, and turns
// them into numbered peers that exchange Envelopes.
//
// Thread-safety: everything on the loop's thread, or before the loop runs.
//
// Invariants:
//  1. No byte of an unproven peer reaches the handlers.
//  2. At most limits::kUnprovenPeers connections are unproven at once. One more displaces the
//     oldest of the address that has most of them, if these are more than
//     limits::kUnprovenOfOneHost or it has had limits::kProofPromptMs; addresses of the run's own
//     members come last. Else the server closes the newest: ten thousand workers that come together
//     get their turns. It closes a connection that is unproven for limits::kAuthDeadlineMs.
//  3. on_peer(id) comes first, then the peer's messages in order, then on_lost(id) exactly once,
//     unless disconnect(id) was called. Nothing comes after either. Ids are never used again.
//  4. A refused stranger is one log line with address and reason. The log has at most
//     limits::kRefusalLogLines lines per limits::kRefusalLogWindowMs; the rest are counted.
//  5. Handlers never run from inside a call of this class, and never after its destructor began.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/rpc/transport.h"
#include "comm/tls/run_token.h"

namespace lockstep::wire {
class Envelope;
}

namespace lockstep::rpc {

using PeerId = uint64_t;  // one authenticated connection; 0: none

class RpcServer {
 public:
  struct Handlers {
    std::function<void(PeerId, const std::string& address)> on_peer;
    std::function<void(PeerId, wire::Envelope&&)> on_message;
    std::function<void(PeerId, const Status&)> on_lost;
  };

  // kConfig if it cannot listen at `address`. `name`: the host under which callers know it; empty:
  // they dial the address.
  static Result<std::unique_ptr<RpcServer>> start(Transport& transport, const Address& address,
                                                  Token token, Logger& logger, Handlers handlers,
                                                  const std::string& name = "");
  ~RpcServer();  // closes everything; queued messages still leave

  const Address& address() const;  // with the real port
  size_t peers() const;

  // Queues a message. Does nothing for a peer that is gone (its on_lost has come or will come).
  void send(PeerId peer, const wire::Envelope& envelope);
  // Encodes a message once for several peers. It lies in memory once while it waits for them.
  static wire::SharedFrame share(const wire::Envelope& envelope);
  void send(PeerId peer, wire::SharedFrame message);

  // To every peer.
  void send_all(const wire::Envelope& envelope);

  // Delivers queued messages, then closes. No callback for this peer comes after it has returned.
  void disconnect(PeerId peer);

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::rpc
