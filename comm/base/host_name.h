// What this machine calls itself.
// Thread-safety: any thread.
#pragma once

#include <string>

namespace lockstep {

std::string host_name();  // "localhost" where it has no name

}  // namespace lockstep
