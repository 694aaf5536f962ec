#include "metrics/files/trace_log.h"

#include <cstdio>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/log.h"

namespace lockstep {
namespace {

// Microseconds with three places: the format's unit, to the nanosecond.
std::string micros(int64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                static_cast<long long>(ns % 1000));
  return text;
}

std::string json_text(std::string_view text) {
  return "\"" + json_escape(text) + "\"";
}

std::string metadata(const std::string& what, const std::string& process, uint32_t thread,
                     std::string_view name) {
  return "{\"ph\":\"M\",\"name\":\"" + what + "\"," + process +
         ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":" + json_text(name) + "}}";
}

}  // namespace

void TraceLog::add(TraceEvent event) {
  std::lock_guard lock(mutex_);
  if (events_.size() >= limits::kTraceEvents) {
    ++dropped_;
    return;
  }
  events_.push_back(std::move(event));
}

bool TraceLog::empty() const {
  std::lock_guard lock(mutex_);
  return events_.empty();
}

std::string TraceLog::json(uint32_t rank, std::string_view process_name) const {
  std::lock_guard lock(mutex_);
  const std::string process = "\"pid\":" + std::to_string(rank);
  const auto number = [](TraceLane lane) { return static_cast<uint32_t>(lane); };
  std::string out =
      "{\"displayTimeUnit\":\"ms\",\"events_left_out\":" + std::to_string(dropped_) +
      ",\"traceEvents\":[\n" + metadata("process_name", process, 0, process_name) + ",\n" +
      metadata("thread_name", process, number(TraceLane::kTraining), "training") + ",\n" +
      metadata("thread_name", process, number(TraceLane::kCommunication), "communication");
  for (const TraceEvent& event : events_) {
    out += ",\n{\"ph\":\"X\",\"name\":" + json_text(event.name) + ",\"cat\":\"" + event.category +
           "\"," + process + ",\"tid\":" + std::to_string(number(event.lane)) +
           ",\"ts\":" + micros(event.begin_ns) +
           ",\"dur\":" + micros(event.end_ns - event.begin_ns) + "}";
  }
  return out + "\n]}\n";
}

}  // namespace lockstep
