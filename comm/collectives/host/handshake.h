// How two workers of one run come to trust a data connection.
//
//     initiator (higher rank)                 acceptor (lower rank)
//     Hello     who, to whom, generation  ->
//                                         <-  Challenge  nonce, HMAC over Hello and nonce
//     Proof     HMAC over the same        ->
//                                         <-  Verdict    welcome, or why not
//     Offer     layout; on the Unix socket with the segments' descriptors, both ways
//
// The run's token keys both HMACs. They name their role, so no attacker can use one as the other.
// Under TLS they cover what only the two ends of this connection know (`binding`, stream.h), so no
// attacker can use them on another connection. All messages have a fixed size and are plain bytes
// of one byte order: no byte of a stranger has to be parsed.
//
// Thread-safety: free functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/hash.h"
#include "comm/base/ids.h"
#include "comm/collectives/host/shared_segment.h"
#include "comm/collectives/host/stream.h"
#include "comm/tls/run_token.h"

namespace lockstep::host {

using Nonce = std::array<uint8_t, 32>;

inline constexpr uint32_t kHelloVersion = 2;                    // of the messages after it, too
inline constexpr uint64_t kHelloMagic = 0x314154414454534cULL;  // "LSTDATA1"

struct Hello {
  uint64_t magic = kHelloMagic;
  Generation generation = 0;
  MemberId from_member = 0;
  MemberId to_member = 0;
  uint32_t from_rank = 0;
  uint32_t version = kHelloVersion;
  Nonce nonce = {};
};

struct Challenge {
  Nonce nonce = {};
  Digest256 proof = {};
};

struct Proof {
  Digest256 proof = {};
};

enum class Welcome : uint32_t { kYes = 1, kOldGeneration = 2, kWrongMember = 3 };

struct Verdict {
  Welcome welcome = Welcome::kYes;
  uint32_t rank = 0;
  MemberId member = 0;
  Generation generation = 0;  // the acceptor's
};

Nonce new_nonce();
Digest256 acceptor_proof(const std::string& token, const Hello& hello, const Nonce& challenge,
                         const std::string& binding);
Digest256 initiator_proof(const std::string& token, const Hello& hello, const Nonce& challenge,
                          const std::string& binding);

// The initiator's side, with whichever token the other side has proven, up to and including the
// Verdict. Errors: kRefused (the listener does not know the token, is in a newer generation, or is
// another member), kTimeout, kAborted, kUnavailable.
Status introduce(Stream& stream, const rpc::Token& token, const Hello& hello,
                 const Deadline& deadline);

// The segments that a rank offers. The peer maps them if the two share a host.
struct Offer {
  uint64_t control_bytes = 0;
  uint64_t gradient_bytes = 0;  // 0: no gradient buffer
  GradientGeometry geometry;
};

struct PeerSegments {
  Offer offer;
  std::shared_ptr<const Segment> control;   // null over TCP
  std::shared_ptr<const Segment> gradient;  // null over TCP or without a buffer
};

// Sends the own offer and receives the peer's. Both ends do the same. `gradient` may be null.
// Checks sizes and seals before it maps anything.
Result<PeerSegments> exchange_segments(Stream& stream, bool over_unix, const Segment& control,
                                       const Segment* gradient, const GradientGeometry& geometry,
                                       const Deadline& deadline);

}  // namespace lockstep::host
