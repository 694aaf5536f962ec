#include "worker/script/worker_lines.h"

#include <charconv>
#include <string>

#include "comm/base/host_name.h"

namespace lockstep {
namespace {

template <typename Number>
bool read_whole(std::string_view text, Number* out) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *out);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

bool set(std::string_view key, std::string_view value, WorkerOptions& options, bool& has_gpu) {
  if (key == "run_dir") options.run_dir = value;
  if (key == "node") options.node = value;
  if (key == "gpu_uuid") options.gpu_uuid = value;
  if (key == "log_name") options.log_name = value;
  if (key == "local_rank") return read_whole(value, &options.local_rank);
  if (key == "gpu") return has_gpu = read_whole(value, &options.gpu);
  if (key == "workers_here")
    return read_whole(value, &options.workers_here) && options.workers_here > 0;
  if (key == "process") return read_whole(value, &options.process);
  if (key == "in_hand_fd") return read_whole(value, &options.in_hand_fd);
  return true;
}

}  // namespace

Result<WorkerOptions> parse_worker_lines(std::string_view text) {
  WorkerOptions options;
  options.node = host_name();
  bool has_gpu = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos ||
        !set(line.substr(0, equals), line.substr(equals + 1), options, has_gpu))
      return Status(Code::kUsage, "LOCKSTEP_WORKER has the line \"" + std::string(line) +
                                      "\", which no agent writes; start the script with lockstep "
                                      "run SCRIPT.py, or without the variable");
  }
  if (options.run_dir.empty())
    return Status(Code::kUsage,
                  "LOCKSTEP_WORKER names no run_dir; start the script with lockstep run SCRIPT.py");
  if (!has_gpu) options.gpu = options.local_rank;
  return options;
}

}  // namespace lockstep
