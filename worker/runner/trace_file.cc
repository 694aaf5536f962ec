#include "worker/runner/trace_file.h"

#include <filesystem>

#include "comm/base/file.h"
#include "comm/run/directory/layout.h"

namespace lockstep {

TraceFile::TraceFile(const wire::JobSpec& job, const std::string& run_dir, Logger& logger)
    : directory_(rundir::file_in(run_dir, rundir::kTrace)), logger_(logger) {
  const auto window = parse_step_window(job.train().trace());
  if (window.is_ok() && window->first < window->end)
    log_ = std::make_unique<TraceLog>(*window, clock_);
}

void TraceFile::step_applied(Step applied, uint32_t rank) {
  if (log_ && applied == log_->window().end) generation_ended(rank);
  if (log_ && log_->window().contains(applied)) is_written_ = false;
}

void TraceFile::generation_ended(uint32_t rank) {
  if (!log_ || is_written_ || log_->empty()) return;
  is_written_ = true;
  const Status status = write(rank);
  if (!status.is_ok()) logger_.warn("no_trace", "the trace was not written: " + status.message());
}

Status TraceFile::write(uint32_t rank) const {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return Status(Code::kInternal, "cannot make " + directory_ + ": " + error.message());
  const std::string number = std::to_string(rank);
  return replace_file(directory_ + "/rank-" + number + ".json", log_->json(rank, "rank " + number));
}

}  // namespace lockstep
