// Thread-safety: call at the start of a program.
#pragma once

#include <cstddef>

namespace lockstep {

// Raises the soft limit of open descriptors to the hard limit: every member is a socket. If the
// system refuses, accept() fails later and says so.
void allow_many_descriptors();

// The number of descriptors that this process may have open now.
size_t most_descriptors();

}  // namespace lockstep
