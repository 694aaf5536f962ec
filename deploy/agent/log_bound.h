// Keeps logs of processes that print without end small. A log that has grown beyond its bound
// keeps its beginning, which says how the process started, and its newest part goes to FILE.1, in
// the place of an earlier one. The process does not notice, because it appends: its next line
// follows the beginning.
//
//   FILE    beginning | a line that says so | what came since
//   FILE.1  the newest part at that time
//
// Output between the copy and the cut, a few microseconds later, is lost.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/byte_units.h"
#include "comm/base/status.h"

namespace lockstep {

struct LogBound {
  int64_t beginning = int64_t{kMib};    // that stays
  int64_t newest = int64_t{15 * kMib};  // that FILE.1 keeps, and FILE may grow by
};

// True if the log was shortened. An error leaves it as it is. REQUIRES: the writer has opened the
// file with O_APPEND.
Result<bool> bound_log(const std::string& path, const LogBound& bound = {});

// The same for a writer that does not append, as NCCL. When the log takes more than `most` bytes on
// the disk, its newest part goes to FILE.1 and its bytes are given back. The writer goes on at its
// place, so the file begins with a hole.
Result<bool> empty_log(const std::string& path, int64_t most);

}  // namespace lockstep
