#include "deploy/cli/export/markdown.h"

#include <algorithm>

#include "comm/base/text/printable.h"

namespace lockstep {
namespace {

size_t longest_run(std::string_view text, char of) {
  size_t longest = 0;
  size_t run = 0;
  for (const char c : text) {
    run = c == of ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

std::string code_span(std::string_view text) {
  const std::string line = printable_line(text);
  if (line.empty()) return "(empty)";
  const std::string fence(longest_run(line, '`') + 1, '`');
  // Readers take one blank away at either end, unless all are blanks.
  const bool has_blanks =
      line.front() == ' ' && line.back() == ' ' && line.find_first_not_of(' ') != std::string::npos;
  const bool is_padded = line.front() == '`' || line.back() == '`' || has_blanks;
  const std::string pad = is_padded ? " " : "";
  return fence + pad + line + pad + fence;
}

std::string plain_text(std::string_view text) {
  constexpr std::string_view kMarks = "\\`*_{}[]<>()#+!|~&$";
  std::string out;
  for (const char c : printable_line(text)) {
    if (kMarks.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace lockstep
