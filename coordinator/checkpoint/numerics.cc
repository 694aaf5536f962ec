#include "coordinator/checkpoint/numerics.h"

#include <algorithm>

namespace lockstep {

std::string numerics_difference(const std::vector<std::string>& here,
                                const std::vector<std::string>& then) {
  for (const std::string& line : here) {
    const std::string key = line.substr(0, line.find('=') + 1);
    const auto other = std::find_if(then.begin(), then.end(),
                                    [&](const std::string& each) { return each.starts_with(key); });
    if (other == then.end() || *other == line) continue;
    return line + " here, " + *other + " then";
  }
  return "";
}

}  // namespace lockstep
