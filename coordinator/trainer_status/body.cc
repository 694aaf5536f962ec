#include "coordinator/trainer_status/body.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>

namespace lockstep::trainer {
namespace {

constexpr int kDigits = 6;  // significant ones of a metric
constexpr uint64_t kPercent = 100;

// A whole number with all its digits: a step has more than kDigits.
std::string text_of(double value) {
  char text[32];
  const bool is_whole = value == std::trunc(value) && std::abs(value) < 1e15;
  const auto written = is_whole ? std::to_chars(text, text + sizeof text, std::llround(value))
                                : std::to_chars(text, text + sizeof text, value,
                                                std::chars_format::general, kDigits);
  return {text, written.ptr};
}

// RFC 3339, to the second, as Kubernetes writes times.
std::string time_text(int64_t wall_ms) {
  const std::time_t seconds = wall_ms / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

int32_t whole_seconds(double seconds) {
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::clamp(std::ceil(seconds), 0.0, kMost));
}

}  // namespace

std::optional<int32_t> percentage(const RunProgress& progress) {
  if (progress.is_complete) return kPercent;
  if (progress.total_steps == 0) return std::nullopt;
  const long double done = static_cast<long double>(progress.step) * kPercent /
                           static_cast<long double>(progress.total_steps);
  return static_cast<int32_t>(std::min<long double>(done, kPercent - 1));
}

std::string body_of(const RunProgress& progress, int64_t wall_ms) {
  nlohmann::json status = {{"lastUpdatedTime", time_text(wall_ms)},
                           {"metrics", nlohmann::json::array()}};
  if (const auto percent = percentage(progress)) status["progressPercentage"] = *percent;
  if (progress.seconds_left && std::isfinite(*progress.seconds_left))
    status["estimatedRemainingSeconds"] = whole_seconds(*progress.seconds_left);
  for (const auto& [name, value] : progress.metrics) {
    if (std::isfinite(value))
      status["metrics"].push_back({{"name", name}, {"value", text_of(value)}});
  }
  return nlohmann::json{{"trainerStatus", std::move(status)}}.dump();
}

}  // namespace lockstep::trainer
