#include "comm/base/text/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lockstep {

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string fixed(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string rate_text(double rate) {
  constexpr double kSmallest = 1e-9;
  if (!std::isfinite(rate) || rate < kSmallest) return rate > 1 ? "inf" : "0";
  if (rate >= 99.95) return grouped(static_cast<uint64_t>(std::llround(std::min(rate, 1e18))));
  const int before = static_cast<int>(std::floor(std::log10(rate)));
  std::string text = fixed(rate, 2 - before);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string percent(double share, int digits) {
  return fixed(100 * share, digits) + " %";
}

}  // namespace lockstep
