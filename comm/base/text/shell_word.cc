#include "comm/base/text/shell_word.h"

#include <algorithm>
#include <cctype>

namespace lockstep {

bool is_plain_word(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string shell_word(std::string_view word) {
  if (is_plain_word(word)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace lockstep
