#include "comm/base/text/moment.h"

#include <time.h>

namespace lockstep {

std::optional<int64_t> parse_moment(const std::string& text, const char* form) {
  tm parts{};
  const char* end = ::strptime(text.c_str(), form, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return ::timegm(&parts);
}

}  // namespace lockstep
