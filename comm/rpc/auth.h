// A program that can read RUN_DIR/token may talk to the coordinator. Both sides prove that they
// know the token without sending it (mutual HMAC-SHA256 challenge, WIRE.md). The proofs are for the
// address that the caller has dialled. So a program that listens at an old coordinator's address
// cannot hand them on to the coordinator of today.
//
// The handshakes are state machines: frames in, frames out, and no socket. A fixed token needs no
// clock. A token in a file may be replaced during the run (run_token.h).
//
// Thread-safety: a handshake belongs to one thread. Free functions have no state.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/tls/run_token.h"
#include "comm/wire/frames.h"

namespace lockstep::rpc {

class ServerHandshake {
 public:
  // `addresses`: the server's own, as callers may dial it.
  ServerHandshake(Token token, std::vector<std::string> addresses);

  // The first frame to send.
  wire::Frame challenge() const;

  // Takes the client's answer. Returns the AuthAccept to send: the client has proven itself. Else
  // kRefused: send refusal(status) and close. Call once.
  Result<wire::Frame> on_response(const wire::Frame& frame);

  static wire::Frame refusal(const Status& why);

 private:
  Token token_;
  std::vector<std::string> addresses_;
  std::string nonce_;
};

class ClientHandshake {
 public:
  ClientHandshake(std::string token, std::string address);

  struct Progress {
    bool done = false;       // the server has proven itself, too
    bool has_reply = false;  // send `reply`
    wire::Frame reply;
  };

  // Takes each frame from the server, until done. kRefused: the server does not believe us, or we
  // do not believe it. It has proven nothing then, and may be any program.
  Result<Progress> on_frame(const wire::Frame& frame);

 private:
  Result<Progress> on_challenge(const wire::Frame& frame);
  Result<Progress> on_accept(const wire::Frame& frame);

  std::string token_;
  std::string address_;
  std::string nonce_;
  std::string server_nonce_;  // empty until the challenge comes
};

}  // namespace lockstep::rpc
