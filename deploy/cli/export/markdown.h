// Makes foreign text safe for a page in Markdown: names of columns and files, words of a command.
// They could begin a heading, end a block of code, or steer the terminal that shows the page.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// `text` in one line of code, within as many backticks as it needs.
std::string code_span(std::string_view text);

// `text` as one line of prose: no character of it means anything to Markdown or HTML.
std::string plain_text(std::string_view text);

}  // namespace lockstep
