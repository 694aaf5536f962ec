// Assertions that stay on in release: a broken invariant must stop the process before it writes
// wrong weights or a wrong ledger. Do not use them for a user's mistake or for outside input.
#pragma once

namespace lockstep {

// Prints "file:line: check failed: condition: message" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* message);

}  // namespace lockstep

#define LOCKSTEP_CHECK(condition, message) \
  (static_cast<bool>(condition)            \
       ? void(0)                           \
       : ::lockstep::check_failed(__FILE__, __LINE__, #condition, message))
