// A journal for a new seat, from that of a coordinator which is lost, or may be only cut off.
// Thread-safety: free function.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep::coordinator {

// `to` holds what every commit in `from` has written, and is whole as soon as it is there; nothing
// of `from` is changed. One commit that is being written meanwhile may be in it or not.
// kNoInput when there is no `from`; kBadData when it stays damaged however often it is read.
Status copy_journal(const std::string& from, const std::string& to);

}  // namespace lockstep::coordinator
