// The events of a run, newest last, for people: log lines of this coordinator, and of earlier ones
// from the end of the log file. A second list has the generations, each with its reason.
//
// INVARIANTS
//  W1 It keeps the newest kEvents events and kGenerations generations.
//
// Thread-safety: one thread, also for a TimelineLogger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "comm/base/json_logger.h"

namespace lockstep::coordinator {

// The path of the coordinator's log below the run directory.
inline constexpr char kLogName[] = "/logs/coordinator.log.jsonl";

struct TimelineEvent {
  std::string time;  // as in the log: UTC, ISO 8601
  std::string level;
  std::string event;
  std::string message;
  uint64_t generation = 0;  // the present one at that time
  uint64_t step = 0;
};

struct TimelineGeneration {
  std::string time;  // when it started
  uint64_t generation = 0;
  uint64_t step = 0;  // steps applied before it
  std::string what;
  std::string why;
};

class Timeline {
 public:
  static constexpr size_t kEvents = 1'000;
  static constexpr size_t kGenerations = 500;

  void add(TimelineEvent event);
  // Adds the last lines of a log file. Skips bytes that are not a log line.
  void add_tail_of(const std::string& path);

  const std::deque<TimelineEvent>& events() const { return events_; }
  const std::deque<TimelineGeneration>& generations() const { return generations_; }

 private:
  std::deque<TimelineEvent> events_;
  std::deque<TimelineGeneration> generations_;
  std::string why_;  // of the next generation
};

// Forwards to another logger, and adds to a timeline.
class TimelineLogger final : public Logger {
 public:
  TimelineLogger(Logger& logger, Timeline& timeline, LogContextSource context)
      : logger_(logger), timeline_(timeline), context_(std::move(context)) {}
  void write(std::string_view level, std::string_view event, std::string_view message,
             LogFields fields) override;

 private:
  Logger& logger_;
  Timeline& timeline_;
  LogContextSource context_;
};

}  // namespace lockstep::coordinator
