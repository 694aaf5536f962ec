#include "comm/collectives/host/handshake.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "comm/collectives/host/flags.h"

namespace lockstep::host {
namespace {

static_assert(std::is_trivially_copyable_v<Hello> && std::is_trivially_copyable_v<Challenge> &&
                  std::is_trivially_copyable_v<Verdict> && std::is_trivially_copyable_v<Offer>,
              "messages travel as their bytes");
static_assert(sizeof(Hello) == 72 && sizeof(Challenge) == 64 && sizeof(Verdict) == 24,
              "messages have no padding whose bytes could differ");

Digest256 role_proof(const std::string& token, std::string_view role, const Hello& hello,
                     const Nonce& challenge, const std::string& binding) {
  std::string text(role);
  text.append(reinterpret_cast<const char*>(&hello), sizeof hello);
  text.append(reinterpret_cast<const char*>(challenge.data()), challenge.size());
  text += binding;
  return hmac_sha256(token, text);
}

bool same(const Digest256& a, const Digest256& b) {
  return equal_constant_time({reinterpret_cast<const char*>(a.data()), a.size()},
                             {reinterpret_cast<const char*>(b.data()), b.size()});
}

Status judge(const Verdict& verdict, const Hello& hello) {
  const std::string who = "member " + std::to_string(hello.to_member);
  switch (verdict.welcome) {
    case Welcome::kYes:
      if (verdict.member == hello.to_member && verdict.generation == hello.generation) {
        return Status::ok();
      }
      return Status(Code::kRefused, who + ": another member or generation answered");
    case Welcome::kOldGeneration:
      return Status(Code::kRefused, who + " is past generation " +
                                        std::to_string(hello.generation) +
                                        "; wait for the coordinator's next start");
    case Welcome::kWrongMember:
      return Status(Code::kRefused, "another worker listens at the address of " + who);
  }
  return Status(Code::kRefused, who + " sent an unknown verdict");
}

}  // namespace

Nonce new_nonce() {
  Nonce nonce;
  const std::string bytes = random_bytes(nonce.size());
  std::memcpy(nonce.data(), bytes.data(), nonce.size());
  return nonce;
}

Digest256 acceptor_proof(const std::string& token, const Hello& hello, const Nonce& challenge,
                         const std::string& binding) {
  return role_proof(token, "lockstep data acceptor", hello, challenge, binding);
}

Digest256 initiator_proof(const std::string& token, const Hello& hello, const Nonce& challenge,
                          const std::string& binding) {
  return role_proof(token, "lockstep data initiator", hello, challenge, binding);
}

Status introduce(Stream& stream, const rpc::Token& token, const Hello& hello,
                 const Deadline& deadline) {
  LOCKSTEP_RETURN_IF_ERROR(stream.send(&hello, sizeof hello, deadline));
  const std::string binding = stream.binding();
  Challenge challenge;
  LOCKSTEP_RETURN_IF_ERROR(stream.receive(&challenge, sizeof challenge, deadline));
  const auto shared = token.find([&](const std::string& each) {
    return same(challenge.proof, acceptor_proof(each, hello, challenge.nonce, binding));
  });
  if (!shared) {
    return Status(Code::kRefused, "the process that answers for member " +
                                      std::to_string(hello.to_member) +
                                      " does not know the run's token");
  }
  const Proof proof = {initiator_proof(*shared, hello, challenge.nonce, binding)};
  LOCKSTEP_RETURN_IF_ERROR(stream.send(&proof, sizeof proof, deadline));
  Verdict verdict;
  LOCKSTEP_RETURN_IF_ERROR(stream.receive(&verdict, sizeof verdict, deadline));
  return judge(verdict, hello);
}

Result<PeerSegments> exchange_segments(Stream& stream, bool over_unix, const Segment& control,
                                       const Segment* gradient, const GradientGeometry& geometry,
                                       const Deadline& deadline) {
  Offer mine;
  mine.control_bytes = control.bytes();
  std::vector<int> fds = {control.fd()};
  if (gradient != nullptr) {
    mine.gradient_bytes = gradient->bytes();
    mine.geometry = geometry;
    fds.push_back(gradient->fd());
  }
  PeerSegments peer;
  std::vector<Descriptor> received;
  if (over_unix) {
    LOCKSTEP_RETURN_IF_ERROR(send_with_fds(stream.fd(), &mine, sizeof mine, fds, deadline));
    LOCKSTEP_RETURN_IF_ERROR(
        receive_with_fds(stream.fd(), &peer.offer, sizeof peer.offer, 2, &received, deadline));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(stream.send(&mine, sizeof mine, deadline));
    LOCKSTEP_RETURN_IF_ERROR(stream.receive(&peer.offer, sizeof peer.offer, deadline));
  }
  const Offer& offer = peer.offer;
  if (offer.gradient_bytes != 0 && (offer.geometry.layout.elements > offer.gradient_bytes ||
                                    offer.geometry.segment_bytes() != offer.gradient_bytes)) {
    return Status(Code::kRefused, "a peer's gradient segment does not fit its own layout");
  }
  if (!over_unix) return peer;
  const size_t expected = offer.gradient_bytes != 0 ? 2 : 1;
  if (received.size() != expected || offer.control_bytes != sizeof(ControlBlock)) {
    return Status(Code::kRefused, "a peer's offer does not hold the segments it announces");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(peer.control,
                            Segment::map_peer(std::move(received[0]), offer.control_bytes));
  if (static_cast<const ControlBlock*>(peer.control->data())->magic != kControlMagic) {
    return Status(Code::kRefused, "a peer's control segment has the wrong version");
  }
  if (offer.gradient_bytes != 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(peer.gradient,
                              Segment::map_peer(std::move(received[1]), offer.gradient_bytes));
  }
  return peer;
}

}  // namespace lockstep::host
