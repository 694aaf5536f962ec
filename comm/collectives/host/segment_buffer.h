// The gradient buffer in a segment, where peers can read it.
//
// Thread-safety: as GradientBuffer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/collectives/collective.h"
#include "comm/link/shared_segment.h"

namespace lockstep::host {

// The places of a gradient buffer's regions in its segment: first the result, then the partials,
// each from a page bound on.
struct GradientGeometry {
  BufferLayout layout;
  uint32_t regions = 0;
  uint32_t unused = 0;  // it travels as its bytes, of which none stays unwritten

  size_t stride_bytes() const { return (layout.elements * sizeof(float) + 4095) / 4096 * 4096; }
  size_t segment_bytes() const { return stride_bytes() * (size_t{regions} + 1); }
  size_t result_offset() const { return 0; }
  size_t partial_offset(uint32_t region) const { return stride_bytes() * (size_t{region} + 1); }
};

std::unique_ptr<GradientBuffer> make_segment_buffer(std::shared_ptr<link::Segment> segment,
                                                    const GradientGeometry& geometry);

}  // namespace lockstep::host
