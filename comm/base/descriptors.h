// Thread-safety: for the start of a program.
#pragma once

namespace lockstep {

// As many open descriptors as the system lets this process have: every member is a socket. Where it
// lets none more, accept() fails later and says so.
void allow_many_descriptors();

}  // namespace lockstep
