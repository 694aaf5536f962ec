// The file of NCCL's warnings: RUN_DIR/logs/worker-0.nccl.txt, one for each place of an agent, so
// workers that are started again leave no more files. The text of the worker before goes to
// worker-0.nccl.txt.1, which replaces an older one.
//
// NCCL opens the file itself and does not append, so it may hold bytes of any kind, and holes where
// the agent has cut it (deploy/agent/log_bound.h).
//
// Thread-safety: free functions. One process at a time for each path.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// Makes room for the file of the worker `process`. Empty: NCCL cannot write there, or something
// else than a plain file has the name.
std::string make_nccl_log(const std::string& run_dir, const std::string& process);

// The value of NCCL_DEBUG_FILE for `path`: NCCL replaces %h and %p in it.
std::string nccl_debug_file(const std::string& path);

// The last lines of the log, printable, of at most limits::kHangLineBytes bytes each before that.
// None if the file is no plain file, or empty.
std::vector<std::string> read_nccl_log(const std::string& path);

}  // namespace lockstep
