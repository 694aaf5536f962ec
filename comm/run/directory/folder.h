// The folders below a run directory. No program makes them ahead: the writer of a file makes its
// folder.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>

namespace lockstep::rundir {

// Makes the folder of `path`, RUN_DIR/FOLDER/FILE, if it is missing. Never makes the run directory
// itself: somebody has removed it. Reports nothing, because opening the file says what is wrong.
void make_folder_of(const std::string& path);

}  // namespace lockstep::rundir
