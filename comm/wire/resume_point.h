// A resume point as a message and as a value.
//
// Thread-safety: pure functions.
#pragma once

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// An unknown phase becomes kEnd. A caller that has to refuse such a phase checks it before.
ResumePoint from_wire(const wire::ResumePoint& point);
wire::ResumePoint to_wire(const ResumePoint& point);

}  // namespace lockstep
