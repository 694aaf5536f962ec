#include "comm/wire/resume_point.h"

namespace lockstep {

ResumePoint from_wire(const wire::ResumePoint& point) {
  return {point.step(), is_phase(point.phase()) ? static_cast<Phase>(point.phase()) : Phase::kEnd};
}

wire::ResumePoint to_wire(const ResumePoint& point) {
  wire::ResumePoint out;
  out.set_step(point.step);
  out.set_phase(static_cast<uint32_t>(point.phase));
  return out;
}

}  // namespace lockstep
