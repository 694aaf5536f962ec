// Two ranks exchange this over a data connection that has come through comm/link/handshake.h:
//
//     Offer     layout; on the Unix socket with the segments' descriptors, both ways
//
// The higher rank is the initiator. The message is plain bytes of a fixed size.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collectives/host/segment_buffer.h"
#include "comm/link/handshake.h"
#include "comm/link/stream.h"

namespace lockstep::host {

inline constexpr link::Purpose kBetweenRanks = {.magic = 0x314154414454534cULL,  // "LSTDATA1"
                                                .version = 2,
                                                .acceptor_role = "lockstep data acceptor",
                                                .initiator_role = "lockstep data initiator"};

// The segments that a rank offers. The peer maps them if the two share a host.
struct Offer {
  uint64_t control_bytes = 0;
  uint64_t gradient_bytes = 0;  // 0: no gradient buffer
  GradientGeometry geometry;
};

struct PeerSegments {
  Offer offer;
  std::shared_ptr<const link::Segment> control;   // null over TCP
  std::shared_ptr<const link::Segment> gradient;  // null over TCP or without a buffer
};

// Sends the own offer and receives the peer's. Both ends do the same. `gradient` may be null.
// Checks sizes and seals before it maps anything.
Result<PeerSegments> exchange_segments(link::Stream& stream, bool over_unix,
                                       const link::Segment& control, const link::Segment* gradient,
                                       const GradientGeometry& geometry,
                                       const link::Deadline& deadline);

}  // namespace lockstep::host
