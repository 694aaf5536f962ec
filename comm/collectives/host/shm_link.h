// A peer in the same host. This rank reads everything in the peer's own memory. The Unix socket of
// the handshake stays open and idle; its hang-up tells that the peer's process is gone.
#pragma once

#include <memory>

#include "comm/base/descriptors.h"
#include "comm/collectives/host/link.h"
#include "comm/collectives/host/rank_handshake.h"

namespace lockstep::host {

std::shared_ptr<Link> make_shm_link(Descriptor socket, PeerSegments peer);

}  // namespace lockstep::host
