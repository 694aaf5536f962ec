// Finds slips in a hand-written YAML file that a parser reports elsewhere, or in words of its
// grammar: a tab, a missing colon, a missing blank after the colon.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct YamlSlip {
  size_t line = 0;   // from 1
  std::string what;  // a sentence with its remedy
};

// Says what is wrong with a line such as "epochs 3" or "epochs:3" that should give a key a value.
// Empty: nothing that can be seen. Only the words of job keys count.
std::string colon_slip(std::string_view line);

// Finds what made a parser stop at `line` (from 1) of a text that is not valid YAML.
std::optional<YamlSlip> find_yaml_slip(std::string_view text, size_t line);

}  // namespace lockstep
