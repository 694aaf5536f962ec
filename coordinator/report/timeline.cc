#include "coordinator/report/timeline.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/text/shallow_json.h"

namespace lockstep::coordinator {
namespace {

using nlohmann::json;

constexpr uint64_t kTailBytes = kMib;  // of an earlier log

// Strangers and duplicates may cause many lines, which tell nothing about training.
bool is_of_interest(std::string_view event) {
  return event != "message_refused" && event != "connection_refused";
}

std::string text_of(const json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_string() ? it->get<std::string>() : std::string();
}

template <typename T>
void push(T value, size_t limit, std::deque<T>* queue) {
  queue->push_back(std::move(value));
  if (queue->size() > limit) queue->pop_front();
}

// "generation 2 of 3 workers is prepared: WHY" and "…, generation 3 of 4 workers takes over: WHY".
std::string why_of(const std::string& message) {
  for (const std::string_view before : {" is prepared: ", " takes over: ", " takes over; "}) {
    const size_t at = message.find(before);
    if (at != std::string::npos) return message.substr(at + before.size());
  }
  return message;
}

}  // namespace

void Timeline::add(TimelineEvent event) {
  if (!is_of_interest(event.event)) return;
  if (event.event == "generation_prepared" || event.event == "change_planned") {
    why_ = why_of(event.message);
  }
  if (event.event == "generation_started" || event.event == "generation_switched") {
    push({event.time, event.generation, event.step, event.message, std::exchange(why_, "")},
         Timeline::kGenerations, &generations_);
  }
  push(std::move(event), Timeline::kEvents, &events_);
}

void Timeline::add_tail_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return;
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  const uint64_t begin = size > kTailBytes ? size - kTailBytes : 0;
  file.seekg(static_cast<std::streamoff>(begin));
  std::string line;
  if (begin > 0) std::getline(file, line);  // the rest of one
  while (std::getline(file, line)) {
    const json parsed = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object()) continue;
    add({text_of(parsed, "ts"), text_of(parsed, "level"), text_of(parsed, "event"),
         text_of(parsed, "message"), count_in(parsed, "generation"), count_in(parsed, "step")});
  }
}

void TimelineLogger::write(std::string_view level, std::string_view event, std::string_view message,
                           LogFields fields) {
  logger_.write(level, event, message, fields);
  const LogContext context = context_();
  timeline_.add({log_timestamp(), std::string(level), std::string(event), std::string(message),
                 context.generation, context.step.value_or(0)});
}

}  // namespace lockstep::coordinator
