// Exit codes of processes, as they travel: from the coordinator in a goodbye, from a script in its
// replies.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

// The status whose exit_code() is `code`; ok for 0, kInternal for a code that is none of ours.
Status status_from_exit_code(int64_t code, const std::string& message);

}  // namespace lockstep
