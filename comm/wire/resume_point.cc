#include "comm/wire/resume_point.h"

#include <algorithm>

namespace lockstep {

ResumePoint from_wire(const wire::ResumePoint& point) {
  const uint32_t phase = std::min(point.phase(), static_cast<uint32_t>(Phase::kEnd));
  return {point.step(), static_cast<Phase>(phase)};
}

wire::ResumePoint to_wire(const ResumePoint& point) {
  wire::ResumePoint out;
  out.set_step(point.step);
  out.set_phase(static_cast<uint32_t>(point.phase));
  return out;
}

}  // namespace lockstep
