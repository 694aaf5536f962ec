// Makes foreign text safe for a terminal: names of files and nodes, reasons, values. Control
// characters in it could move the cursor, hide lines, or write what a person believes to be ours.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Keeps line ends and tabs. Writes as escapes (\x1b): control characters of ASCII and Latin-1,
// characters that turn the direction of text, and bytes that are not UTF-8.
std::string printable(std::string_view text);

// For a name in a line or a cell of a table: line ends and tabs are escapes, too (\n, \t). Else a
// name could begin a line that looks like ours.
std::string printable_line(std::string_view text);

// For a message, which may have several lines: as printable(), and a line after the first that
// begins as messages of ours do is indented, so that a name with a line end in it imitates none.
std::string printable_message(std::string_view text);

}  // namespace lockstep
