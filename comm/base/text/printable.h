// Text of others on a terminal: names of files and nodes, reasons, values. Control characters in it
// could move the cursor, hide lines, or write what a person believes to be ours.
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Keeps line ends and tabs. Writes as escapes (\x1b): control characters of ASCII and Latin-1,
// those that turn the direction of text, and bytes that are not UTF-8.
std::string printable(std::string_view text);

}  // namespace lockstep
