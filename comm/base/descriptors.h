// Thread-safety: for the start of a program.
#pragma once

#include <cstddef>

namespace lockstep {

// As many open descriptors as the system lets this process have: every member is a socket. Where it
// lets none more, accept() fails later and says so.
void allow_many_descriptors();

// How many this process may have open now.
size_t most_descriptors();

}  // namespace lockstep
