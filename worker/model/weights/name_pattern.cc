#include "worker/model/weights/name_pattern.h"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "comm/base/text/nearest.h"

namespace lockstep {

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

Status check_pattern(const std::string& key, const std::string& pattern,
                     std::span<const std::string> names) {
  if (std::ranges::any_of(names, [&](const auto& name) { return matches_pattern(pattern, name); }))
    return Status::ok();
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string meant = did_you_mean(pattern, known);
  return {Code::kUsage, key + " is '" + pattern + "', which matches no tensor" +
                            (!meant.empty() || known.empty() ? meant
                                                             : "; the first is " + names.front() +
                                                                   ", the last " + names.back())};
}

}  // namespace lockstep
