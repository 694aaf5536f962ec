// Names and words in any case.
//
// Thread-safety: pure functions.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace lockstep {

// Changes ASCII letters only.
inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Whether the name ends so, in any case. `ending`: in lower case.
inline bool ends_like(std::string_view name, std::string_view ending) {
  return name.size() >= ending.size() &&
         lower_case(name.substr(name.size() - ending.size())) == ending;
}

}  // namespace lockstep
