// The Logger that writes a file, and where a process stands in its run, for every line of its log:
// lines of many processes can be put beside each other by run, rank, generation and step.
//
//   {"ts":...,"message":"...","run":"shoes","rank":1,"generation":3,"step":120}
//
// A field of the line with the same name is told instead; what is not known yet is left out.
//
// Thread-safety: the source is called on the thread that logs, so it has to be safe on each of
// them; it must not log itself.
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

// Appends to `path`, every line flushed. Also prints warnings and errors as "process: message" to
// stderr when `echo_to_stderr`.
Result<std::unique_ptr<Logger>> open_json_logger(const std::string& path, std::string process,
                                                 bool echo_to_stderr);

// The same, with the context in every line.
Result<std::unique_ptr<Logger>> open_json_logger(const std::string& path, std::string process,
                                                 bool echo_to_stderr, LogContextSource context);

// The present time as in a log: "2026-11-21T06:00:00.123Z".
std::string log_timestamp();

}  // namespace lockstep
