// A worker's samples in hand, as a message and as a value.
//
// Thread-safety: pure functions.
#pragma once

#include "comm/base/work_in_hand.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// Checks nothing: callers that know the run check its steps and slots.
InHand from_wire(const wire::InHand& message);
wire::InHand to_wire(const InHand& in_hand);

}  // namespace lockstep
