// Descriptors 0 to 2 of a program: open at its start, and told apart from a lost output at its end.
//
// Thread-safety: the main thread, before there are others and after they have ended.
#pragma once

#include "comm/base/status.h"

namespace lockstep {

// Opens /dev/null in the place of those that are closed (`>&-`, some daemons). A file of ours would
// get the number otherwise, and take in what is printed.
void secure_standard_streams();

// Writes what is left of stdout. kInternal if anything that was printed found no place.
Status finish_stdout();

}  // namespace lockstep
