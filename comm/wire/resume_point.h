// A resume point as a message and as a value.
//
// Thread-safety: pure functions.
#pragma once

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// A phase that this version does not know becomes kEnd: who has to refuse it looks first.
ResumePoint from_wire(const wire::ResumePoint& point);
wire::ResumePoint to_wire(const ResumePoint& point);

}  // namespace lockstep
