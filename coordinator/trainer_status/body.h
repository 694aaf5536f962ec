// What Kubeflow Trainer is told about a run: the body of a report (target.h says where these facts
// are from). Every report replaces the one before, so each one tells all that is known.
//
//   {"trainerStatus": {"progressPercentage": 45,            0..100; absent: not known
//                      "estimatedRemainingSeconds": 7956,   32 bits; absent: not known
//                      "metrics": [{"name": "loss", "value": "0.2347"}, ...],
//                      "lastUpdatedTime": "2026-11-23T07:05:00Z"}}   required
//
// The server takes at most 64 KiB, 256 metrics, and 64 characters of a name or a value: ours are a
// dozen numbers.
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

// 100 is said only when the run is complete: after the last step its checkpoint is still to come.
std::optional<int32_t> percentage(const RunProgress& progress);

// `wall_ms`: when this was seen, since 1970 UTC. Metrics that are no finite number are left out.
std::string body_of(const RunProgress& progress, int64_t wall_ms);

}  // namespace lockstep::trainer
