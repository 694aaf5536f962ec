// Descriptors 0 to 2 of a program. These functions open them at its start, print lines without
// characters that could steer a terminal, and find at the end whether output was lost.
//
// Thread-safety: print_text() and print_error() on any thread; the others on the main thread,
// before there are others and after they have ended.
#pragma once

#include "comm/base/status.h"

namespace lockstep {

// Opens /dev/null in the place of closed descriptors (`>&-`, some daemons). Otherwise a file of
// ours would get the number, and take in what is printed.
void secure_standard_streams();

// As std::printf(), to stdout and to stderr, but the whole text is printable(), and
// printable_message() to stderr (base/text/printable.h). A program's own control sequences need
// another way.
[[gnu::format(printf, 1, 2)]] void print_text(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void print_error(const char* format, ...);

// Writes the rest of stdout. kInternal if anything that was printed could not be written.
Status finish_stdout();

}  // namespace lockstep
