// The name of this machine.
//
// Thread-safety: any thread.
#pragma once

#include <string>

namespace lockstep {

std::string host_name();  // "localhost" if the machine has no name

}  // namespace lockstep
