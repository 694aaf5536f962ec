// The metrics of a model's or a script's own, as they travel in records and stand in files.
//
// Errors: values.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

inline constexpr size_t kMetricsOfAModel = 11;
inline constexpr size_t kMetricNameBytes = 64;

// The name of the average of the weights, in names of tensors and of metrics (train.ema).
inline constexpr std::string_view kAverageName = "ema";

// An evaluation also has the metrics of the average: its loss, accuracy and top-5, and the model's;
// or, in a script, the results of its further evaluations.
inline constexpr size_t kMetricsOfAnEvaluation = 2 * kMetricsOfAModel + 3;

inline constexpr size_t kReportedNameBytes = kAverageName.size() + 1 + kMetricNameBytes;

// Letters, digits, '_', '.', '-' and '/': a name stands in JSON, in labels and in tags as it is.
inline bool is_metric_name(std::string_view name, size_t most_bytes = kMetricNameBytes) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.-/").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= most_bytes &&
         std::all_of(name.begin(), name.end(), is_fine);
}

// kUsage unless a record holds metrics of these names. The message begins with what gives them
// does: "gives ...". Without this check workers would train, and the coordinator take none of their
// records.
Status check_metrics(const std::vector<std::string>& names);

// `metrics`: a field of wire::Metric with at most `most` of them.
template <typename Metrics>
bool are_metrics(const Metrics& metrics, size_t most) {
  return static_cast<size_t>(metrics.size()) <= most &&
         std::all_of(metrics.begin(), metrics.end(), [](const auto& metric) {
           return is_metric_name(metric.name(), kReportedNameBytes);
         });
}

}  // namespace lockstep
