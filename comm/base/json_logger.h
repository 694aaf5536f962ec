// The Logger that writes a file. Every line carries the place of the process in its run, so that
// people can line up the logs of many processes by run, rank, generation and step:
//
//   {"ts":...,"message":"...","run":"shoes","rank":1,"generation":3,"step":120}
//
// A field of the line itself wins over a context field of the same name. Unknown context is left
// out.
//
// Thread-safety: the logger calls the source on every thread that logs, so the source must be safe
// on all of them. The source must not log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/log.h"

namespace lockstep {

struct LogContext {
  std::string run;
  std::optional<uint32_t> rank;
  uint64_t generation = 0;  // 0: none yet
  std::optional<uint64_t> step;
};

using LogContextSource = std::function<LogContext()>;

// Appends to `path` and flushes every line. If `echo_to_stderr`, also prints warnings and errors to
// stderr as "process: message".
Result<std::unique_ptr<Logger>> open_json_logger(const std::string& path, std::string process,
                                                 bool echo_to_stderr);

// The same, with the context in every line.
Result<std::unique_ptr<Logger>> open_json_logger(const std::string& path, std::string process,
                                                 bool echo_to_stderr, LogContextSource context);

// The present time in the format of a log: "2026-11-21T06:00:00.123Z".
std::string log_timestamp();

}  // namespace lockstep
