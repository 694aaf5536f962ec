// What happened in a run, newest last, for people: the lines of the coordinator's log, of this
// process and, as far as the end of the file tells, of those before. Generations are kept apart,
// each with why it came to be.
//
// INVARIANTS
//  W1 At most kEvents events and kGenerations generations: the newest.
//
// Thread-safety: one thread. TimelineLogger: like the logger that it forwards to, but one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "comm/base/json_logger.h"

namespace lockstep::coordinator {

// Where the coordinator's log lies below the run directory.
inline constexpr char kLogName[] = "/logs/coordinator.log.jsonl";

struct TimelineEvent {
  std::string time;  // as in the log: UTC, ISO 8601
  std::string level;
  std::string event;
  std::string message;
  uint64_t generation = 0;  // the present one then
  uint64_t step = 0;
};

struct TimelineGeneration {
  std::string time;  // when it was started
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
  // The last lines of a log; what is no line of a log is passed over.
  void add_tail_of(const std::string& path);

  const std::deque<TimelineEvent>& events() const { return events_; }
  const std::deque<TimelineGeneration>& generations() const { return generations_; }

 private:
  std::deque<TimelineEvent> events_;
  std::deque<TimelineGeneration> generations_;
  std::string why_;  // of the next generation
};

// Forwards, and notes.
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
