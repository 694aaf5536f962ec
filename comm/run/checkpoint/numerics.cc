#include "comm/run/checkpoint/numerics.h"

#include <algorithm>
#include <string_view>

namespace lockstep {
namespace {

// The values that versions computed with before they wrote the key.
constexpr std::string_view kMeantByAbsence[] = {"decay=all"};

std::string_view key_of(std::string_view line) {
  return line.substr(0, line.find('=') + 1);
}

// The line of this key; empty: its absence says nothing.
std::string line_of(const std::vector<std::string>& lines, std::string_view key) {
  const auto has_key = [key](std::string_view line) { return key_of(line) == key; };
  const auto line = std::ranges::find_if(lines, has_key);
  if (line != lines.end()) return *line;
  const auto meant = std::ranges::find_if(kMeantByAbsence, has_key);
  return meant == std::end(kMeantByAbsence) ? "" : std::string(*meant);
}

}  // namespace

std::string numerics_difference(const std::vector<std::string>& here,
                                const std::vector<std::string>& then) {
  if (here.empty() || then.empty()) return "";
  std::vector<std::string> all = here;
  all.insert(all.end(), kMeantByAbsence, std::end(kMeantByAbsence));
  for (const std::string& line : all) {
    const std::string_view key = key_of(line);
    const std::string mine = line_of(here, key);
    const std::string other = line_of(then, key);
    if (!other.empty() && other != mine) return mine + " here, " + other + " then";
  }
  return "";
}

}  // namespace lockstep
