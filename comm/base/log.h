// One JSON object a line. json_logger.h writes them to DIR/logs/<process>.log.jsonl:
//   {"ts":"2026-11-21T06:00:00.123Z","level":"info","process":"worker-0","event":"generation_started",
//    "message":"...","generation":3}
// `event` is a stable name for programs, `message` is a sentence for people, fields carry numbers.
//
// Thread-safety: all calls from any thread. Callers pass a Logger in; there is no global one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "comm/base/status.h"

namespace lockstep {

struct LogField {
  std::string_view key;
  std::variant<int64_t, uint64_t, double, std::string_view> value;

  template <typename T>
  LogField(std::string_view k, T v) : key(k) {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<double>(v);
    else if constexpr (std::is_signed_v<T>)
      value = static_cast<int64_t>(v);
    else if constexpr (std::is_integral_v<T>)
      value = static_cast<uint64_t>(v);
    else
      value = std::string_view(v);
  }
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
};

using LogFields = std::initializer_list<LogField>;

class Logger {
 public:
  virtual ~Logger() = default;
  virtual void write(std::string_view level, std::string_view event, std::string_view message,
                     LogFields fields) = 0;

  void info(std::string_view event, std::string_view message, LogFields fields = {}) {
    write("info", event, message, fields);
  }
  void warn(std::string_view event, std::string_view message, LogFields fields = {}) {
    write("warn", event, message, fields);
  }
  void error(std::string_view event, std::string_view message, LogFields fields = {}) {
    write("error", event, message, fields);
  }
};

// Discards everything; for tests and tools.
std::unique_ptr<Logger> null_logger();

// `text` as the content of a JSON string: quotes, backslashes and control bytes escaped, invalid
// UTF-8 bytes replaced by U+FFFD.
std::string json_escape(std::string_view text);

}  // namespace lockstep
