// The metrics of a model's own, as they travel in records and stand in files.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace lockstep {

inline constexpr size_t kMetricsOfAModel = 11;
inline constexpr size_t kMetricNameBytes = 64;

// Letters, digits, '_', '.', '-' and '/': a name stands in JSON, in labels and in tags as it is.
inline bool is_metric_name(std::string_view name) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.-/").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kMetricNameBytes &&
         std::all_of(name.begin(), name.end(), is_fine);
}

// `metrics`: a field of wire::Metric.
template <typename Metrics>
bool are_metrics(const Metrics& metrics) {
  return static_cast<size_t>(metrics.size()) <= kMetricsOfAModel &&
         std::all_of(metrics.begin(), metrics.end(),
                     [](const auto& metric) { return is_metric_name(metric.name()); });
}

}  // namespace lockstep
