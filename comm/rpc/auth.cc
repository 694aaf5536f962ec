#include "comm/rpc/auth.h"

#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/wire/control.pb.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kNonceBytes = 32;

std::string proof(const std::string& token, std::string_view label, const std::string& first,
                  const std::string& second, const std::string& address) {
  const Digest256 digest = hmac_sha256(token, std::string(label) + first + second + address);
  return std::string(digest.begin(), digest.end());
}

std::string client_proof(const std::string& token, const std::string& server_nonce,
                         const std::string& client_nonce, const std::string& address) {
  return proof(token, "lockstep client", server_nonce, client_nonce, address);
}

std::string server_proof(const std::string& token, const std::string& server_nonce,
                         const std::string& client_nonce, const std::string& address) {
  return proof(token, "lockstep server", client_nonce, server_nonce, address);
}

Status version_differs(uint32_t theirs) {
  return Status(Code::kRefused,
                "the peer speaks protocol version " + std::to_string(theirs) +
                    ", this program version " + std::to_string(wire::kWireVersion),
                Obstacle::kVersion);
}

Status check_nonce(const std::string& nonce) {
  if (nonce.size() == kNonceBytes) return Status::ok();
  return Status(Code::kRefused, "the peer's nonce has " + std::to_string(nonce.size()) +
                                    " bytes instead of " + std::to_string(kNonceBytes));
}

}  // namespace

ServerHandshake::ServerHandshake(Token token, std::vector<std::string> addresses)
    : token_(std::move(token)),
      addresses_(std::move(addresses)),
      nonce_(random_bytes(kNonceBytes)) {}

wire::Frame ServerHandshake::challenge() const {
  wire::AuthChallenge message;
  message.set_version(wire::kWireVersion);
  message.set_nonce(nonce_);
  return make_frame(wire::FrameKind::kAuthChallenge, message);
}

Result<wire::Frame> ServerHandshake::on_response(const wire::Frame& frame) {
  wire::AuthResponse response;
  LOCKSTEP_RETURN_IF_ERROR(parse_frame(frame, wire::FrameKind::kAuthResponse, &response));
  if (response.version() != wire::kWireVersion) return version_differs(response.version());
  LOCKSTEP_RETURN_IF_ERROR(check_nonce(response.nonce()));
  const auto token = token_.find([&](const std::string& each) {
    return equal_constant_time(response.proof(),
                               client_proof(each, nonce_, response.nonce(), response.address()));
  });
  if (!token) return Status(Code::kRefused, "the token is wrong");
  if (std::find(addresses_.begin(), addresses_.end(), response.address()) == addresses_.end())
    return Status(Code::kRefused,
                  "it has dialled " + response.address() + ", and this is " + addresses_.front() +
                      ": something relays connections; set comm.advertise if it is yours");
  wire::AuthAccept accept;
  accept.set_proof(server_proof(*token, nonce_, response.nonce(), response.address()));
  return make_frame(wire::FrameKind::kAuthAccept, accept);
}

wire::Frame ServerHandshake::refusal(const Status& why) {
  wire::AuthRefuse message;
  message.set_reason(why.message());
  return make_frame(wire::FrameKind::kAuthRefuse, message);
}

ClientHandshake::ClientHandshake(std::string token, std::string address)
    : token_(std::move(token)), address_(std::move(address)), nonce_(random_bytes(kNonceBytes)) {}

Result<ClientHandshake::Progress> ClientHandshake::on_frame(const wire::Frame& frame) {
  if (frame.kind == wire::FrameKind::kAuthRefuse) {
    wire::AuthRefuse refuse;
    LOCKSTEP_RETURN_IF_ERROR(parse_frame(frame, wire::FrameKind::kAuthRefuse, &refuse));
    return Status(Code::kRefused, "the server refused us: " + refuse.reason());
  }
  return server_nonce_.empty() ? on_challenge(frame) : on_accept(frame);
}

Result<ClientHandshake::Progress> ClientHandshake::on_challenge(const wire::Frame& frame) {
  wire::AuthChallenge challenge;
  LOCKSTEP_RETURN_IF_ERROR(parse_frame(frame, wire::FrameKind::kAuthChallenge, &challenge));
  if (challenge.version() != wire::kWireVersion) return version_differs(challenge.version());
  LOCKSTEP_RETURN_IF_ERROR(check_nonce(challenge.nonce()));
  server_nonce_ = challenge.nonce();
  wire::AuthResponse response;
  response.set_version(wire::kWireVersion);
  response.set_nonce(nonce_);
  response.set_address(address_);
  response.set_proof(client_proof(token_, server_nonce_, nonce_, address_));
  Progress progress;
  progress.has_reply = true;
  progress.reply = make_frame(wire::FrameKind::kAuthResponse, response);
  return progress;
}

Result<ClientHandshake::Progress> ClientHandshake::on_accept(const wire::Frame& frame) {
  wire::AuthAccept accept;
  LOCKSTEP_RETURN_IF_ERROR(parse_frame(frame, wire::FrameKind::kAuthAccept, &accept));
  if (!equal_constant_time(accept.proof(), server_proof(token_, server_nonce_, nonce_, address_)))
    return Status(Code::kRefused,
                  "the server does not know the token: something else listens at "
                  "this address, or the run directory is of another run");
  Progress progress;
  progress.done = true;
  return progress;
}

}  // namespace lockstep::rpc
