// The body of a report to Kubeflow Trainer (target.h has the sources of these facts). Every report
// replaces the one before, so each one has all known values.
//
//   {"trainerStatus": {"progressPercentage": 45,            0..100; absent: unknown
//                      "estimatedRemainingSeconds": 7956,   32 bits; absent: unknown
//                      "metrics": [{"name": "loss", "value": "0.2347"}, ...],
//                      "lastUpdatedTime": "2026-11-23T07:05:00Z"}}   required
//
// The server takes at most 64 KiB, 256 metrics, and 64 characters of a name or a value. Our reports
// have a dozen numbers.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::trainer {

struct RunProgress {
  uint64_t step = 0;         // that are done for good
  uint64_t total_steps = 0;  // 0: not known yet
  bool is_ended = false;
  bool is_complete = false;  // ended, and nothing is left to do
  std::optional<double> seconds_left = {};
  std::vector<std::pair<std::string, double>> metrics = {};  // names of 1 to 64 characters
  bool operator==(const RunProgress&) const = default;
};

// Is 100 only when the run is complete, because the last checkpoint comes after the last step.
std::optional<int32_t> percentage(const RunProgress& progress);

// `wall_ms`: the time of these values, since 1970 UTC. Leaves out metrics that are not finite.
std::string body_of(const RunProgress& progress, int64_t wall_ms);

}  // namespace lockstep::trainer
