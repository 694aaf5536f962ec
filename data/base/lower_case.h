// Thread-safety: a pure function.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace lockstep::data {

// Of ASCII letters.
inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace lockstep::data
