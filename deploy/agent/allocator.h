// cluster.malloc: which library gives a worker its memory. The agent preloads it, as LD_PRELOAD
// does, because a process cannot change its allocator once it runs.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

// The directories that may hold a library of the system: LD_LIBRARY_PATH, then the usual ones.
std::vector<std::string> library_directories();

// The path of the library for a value of cluster.malloc; empty for "system", and for "" of an older
// run. kConfig, with the package to install, if it is in none of the directories.
Result<std::string> allocator_library(
    std::string_view name, const std::vector<std::string>& directories = library_directories());

// Values of cluster.malloc other than "system" whose library is there.
std::vector<std::string> installed_allocators(
    const std::vector<std::string>& directories = library_directories());

}  // namespace lockstep
