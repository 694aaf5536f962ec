// Several ranks in one process, one thread each, over plain memory. It is the simplest Collective,
// for tests and as the yardstick of the others.
//
// Thread-safety: as in collective.h, with each rank's Collective on a thread of its own.
#pragma once

#include <memory>
#include <vector>

#include "comm/base/ids.h"
#include "comm/collectives/collective.h"

namespace lockstep {

// A GradientBuffer in plain zeroed memory. REQUIRES: a valid layout, regions > 0. `first`: memory
// of the caller's for region 0, which outlives the buffer and has layout.elements floats; null: its
// own.
std::unique_ptr<GradientBuffer> make_plain_buffer(const BufferLayout& layout, uint32_t regions,
                                                  float* first = nullptr);

// One Collective per rank of `generation`. buffers[r] belongs to rank r. All have one layout, and
// outlive the Collectives. abort() on any Collective aborts all. Destroying a rank's Collective
// while others are in use aborts those too.
std::vector<std::unique_ptr<Collective>> make_loopback(Generation generation,
                                                       const std::vector<GradientBuffer*>& buffers);

}  // namespace lockstep
