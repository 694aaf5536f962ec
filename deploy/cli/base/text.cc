#include "deploy/cli/base/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lockstep {

std::string perplexity_text(double loss) {
  constexpr double kMany = 1e6;
  const double perplexity = std::exp(loss);
  char text[32];
  std::snprintf(text, sizeof text, perplexity < kMany ? "%.2f" : "%.2e", perplexity);
  return text;
}

std::string learning_rate_text(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", rate);
  return text;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const auto total = static_cast<uint64_t>(std::llround(seconds));
  const unsigned s = total % 60, m = total / 60 % 60, h = static_cast<unsigned>(total / 3600);
  char text[64];
  if (h >= 48)
    std::snprintf(text, sizeof text, "%u d %u h", h / 24, h % 24);
  else if (h > 0)
    std::snprintf(text, sizeof text, "%u:%02u:%02u", h, m, s);
  else
    std::snprintf(text, sizeof text, "%u:%02u", m, s);
  return text;
}

std::string bytes_text(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 10'000) return std::to_string(bytes) + " B";
  if (bytes < 10'000'000) return fixed(value / 1e3, 1) + " kB";
  if (bytes < 10'000'000'000) return fixed(value / 1e6, 1) + " MB";
  return fixed(value / 1e9, 1) + " GB";
}

std::string plural(uint64_t count, const std::string& word) {
  return grouped(count) + " " + word + (count == 1 ? "" : "s");
}

size_t columns(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace lockstep
