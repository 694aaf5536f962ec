// Patterns over the names of tensors, as in a shell: * any characters (dots too), ? one character,
// [12] one of these.
//
// Thread-safety: pure functions.
#pragma once

#include <span>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

bool matches_pattern(const std::string& pattern, const std::string& name);

// Ok if `pattern` matches one of `names`. kUsage if not, with the nearest name. `key` is the key of
// the job that holds the pattern.
Status check_pattern(const std::string& key, const std::string& pattern,
                     std::span<const std::string> names);

}  // namespace lockstep
