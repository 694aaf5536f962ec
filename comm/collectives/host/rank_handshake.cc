#include "comm/collectives/host/rank_handshake.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/collectives/host/flags.h"
#include "comm/link/data_socket.h"

namespace lockstep::host {

static_assert(std::is_trivially_copyable_v<Offer> &&
                  std::has_unique_object_representations_v<Offer>,
              "the message travels as its bytes, without gaps that show what lay there before");

Result<PeerSegments> exchange_segments(link::Stream& stream, bool over_unix,
                                       const link::Segment& control, const link::Segment* gradient,
                                       const GradientGeometry& geometry,
                                       const link::Deadline& deadline) {
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
    LOCKSTEP_RETURN_IF_ERROR(link::send_with_fds(stream.fd(), &mine, sizeof mine, fds, deadline));
    LOCKSTEP_RETURN_IF_ERROR(link::receive_with_fds(stream.fd(), &peer.offer, sizeof peer.offer, 2,
                                                    &received, deadline));
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
                            link::Segment::map_peer(std::move(received[0]), offer.control_bytes));
  if (static_cast<const ControlBlock*>(peer.control->data())->magic != kControlMagic) {
    return Status(Code::kRefused, "a peer's control segment has the wrong version");
  }
  if (offer.gradient_bytes != 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        peer.gradient, link::Segment::map_peer(std::move(received[1]), offer.gradient_bytes));
  }
  return peer;
}

}  // namespace lockstep::host
