#include "comm/base/text/number_text.h"

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

std::string percent(double share, int digits) {
  return fixed(100 * share, digits) + " %";
}

}  // namespace lockstep
