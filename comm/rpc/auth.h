// Who may talk to the coordinator: whoever can read RUN_DIR/token. Both sides prove that they know
// it without sending it (mutual HMAC-SHA256 challenge, WIRE.md).
//
// The handshakes are state machines: frames in, frames out, and no socket. A fixed token knows no
// clock either; one in a file may be replaced meanwhile (run_token.h).
// Thread-safety: a handshake belongs to one thread; free functions have no state.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/tls/run_token.h"
#include "comm/wire/frames.h"

namespace lockstep::rpc {

class ServerHandshake {
 public:
  explicit ServerHandshake(Token token);
  ServerHandshake(Token token, std::string nonce);  // 32 bytes; for tests

  // The first frame to send.
  wire::Frame challenge() const;

  // The client's answer. Gives the AuthAccept to send: the client is proven. kRefused otherwise;
  // send refusal(status) and close. Call once.
  Result<wire::Frame> on_response(const wire::Frame& frame);

  static wire::Frame refusal(const Status& why);

 private:
  Token token_;
  std::string nonce_;
};

class ClientHandshake {
 public:
  explicit ClientHandshake(std::string token);
  ClientHandshake(std::string token, std::string nonce);  // 32 bytes; for tests

  struct Progress {
    bool done = false;       // the server is proven too
    bool has_reply = false;  // `reply` is to be sent
    wire::Frame reply;
  };

  // Each frame from the server, until done. kRefused is final: trying again will not help.
  Result<Progress> on_frame(const wire::Frame& frame);

 private:
  Result<Progress> on_challenge(const wire::Frame& frame);
  Result<Progress> on_accept(const wire::Frame& frame);

  std::string token_;
  std::string nonce_;
  std::string server_nonce_;  // empty until the challenge came
};

}  // namespace lockstep::rpc
