// A timeline of a worker in a few steps: phases, buckets, operators, each with its begin and its
// end. The format is Chrome's trace event format, which chrome://tracing and Perfetto read ("Trace
// Event Format", Google, complete events).
//
// Times come from the monotonic clock, which all processes of one host share. So a viewer can lay
// their files side by side.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/step_window.h"

namespace lockstep {

// A row of the timeline. Two events of one row are nested or disjoint.
enum class TraceLane : uint8_t {
  kTraining = 1,   // steps, their phases, and the operators inside
  kCommunication,  // buckets, from the merge of this rank's slots to their sum
};

struct TraceEvent {
  TraceLane lane = TraceLane::kTraining;
  const char* category = "";  // "step", "phase", "bucket" or "operator"; a literal
  std::string name;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

class TraceLog {
 public:
  // Records the steps in `window`. `clock` outlives the log.
  TraceLog(const StepWindow& window, const Clock& clock) : window_(window), clock_(clock) {}

  const StepWindow& window() const { return window_; }
  int64_t now_ns() const { return clock_.monotonic_ns(); }

  // Only counts events beyond limits::kTraceEvents.
  void add(TraceEvent event);
  bool empty() const;

  // Viewers show the process as `process_name`, with the number `rank`.
  std::string json(uint32_t rank, std::string_view process_name) const;

 private:
  const StepWindow window_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
  uint64_t dropped_ = 0;
};

}  // namespace lockstep
