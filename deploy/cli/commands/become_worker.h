// For commands that compute: only the worker has a tensor library, so it takes over this process.
//
// Thread-safety: the main thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// Runs `lockstep-worker WORDS` in this process. Returns only if it cannot: the exit code, with the
// reason on stderr.
int become_worker(std::vector<std::string> words);

}  // namespace lockstep
