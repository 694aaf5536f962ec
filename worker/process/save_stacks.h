// Writes the present stacks of all threads of this process to a file, as text: a person needs them
// of a worker that hangs, before the worker is evicted.
//
// Frames are addresses in a program or library; the file says how to turn them into names. For a
// thread that does not answer (stopped, or stuck inside the kernel) it lists the kernel's state.
//
// Errors: kInternal when the file cannot be written.
// Thread-safety: one call at a time. It keeps the signal SIGRTMIN + 5 forever.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

Status save_stacks(const std::string& path);

// Adds to a file that save_stacks() has written.
Status add_to_stacks(const std::string& path, const std::string& text);

}  // namespace lockstep
