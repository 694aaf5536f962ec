// Several ranks in one process, one thread each, over plain memory: the simplest Collective there
// is, for tests and as the yardstick of the others.
//
// Thread-safety: as Collective says; each rank's Collective on a thread of its own.
#pragma once

#include <memory>
#include <vector>

#include "comm/base/ids.h"
#include "comm/collectives/collective.h"

namespace lockstep {

// A GradientBuffer in plain zeroed memory. REQUIRES: a valid layout, regions > 0.
std::unique_ptr<GradientBuffer> make_plain_buffer(const BufferLayout& layout, uint32_t regions);

// One Collective per rank of `generation`. buffers[r] belongs to rank r, all of one layout, and
// outlives the Collectives. abort() on any of them aborts all. A rank's Collective may be
// destroyed while others are in use; then they are aborted too.
std::vector<std::unique_ptr<Collective>> make_loopback(Generation generation,
                                                       const std::vector<GradientBuffer*>& buffers);

}  // namespace lockstep
