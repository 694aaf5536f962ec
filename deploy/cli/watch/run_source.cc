#include "deploy/cli/watch/run_source.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "comm/base/clock.h"
#include "comm/base/limits.h"
#include "comm/run/directory/claim.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_lock.h"
#include "coordinator/report/watch_json.h"
#include "deploy/cli/base/ask_http.h"

namespace lockstep {
namespace {

// When the file last changed; 0 when it is not there.
int64_t stamp_of(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? 0 : time.time_since_epoch().count();
}

// True if a process on this machine holds a lock of the file. Takes no lock itself, which would be
// in the way of a process that wants it.
bool is_held_by_anybody(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return false;
  char id[64];
  std::snprintf(id, sizeof id, " %02x:%02x:%llu ", major(file.st_dev), minor(file.st_dev),
                static_cast<unsigned long long>(file.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("FLOCK") != std::string::npos && line.find(id) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

bool is_held(const std::string& run_dir) {
  const std::string coordinators = lock_path(journal_path(run_dir));
  return is_held_by_anybody(rundir::file_in(run_dir, rundir::kRunLock)) ||
         is_held_by_anybody(coordinators);
}

Result<RunSource> RunSource::open(const std::string& run_dir) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string path, absolute_path(run_dir));
  if (!std::filesystem::exists(rundir::file_in(path, rundir::kJob)))
    return Status(Code::kNoInput, path + " is not a run directory: it has no job.pb");
  return RunSource(std::move(path));
}

Result<std::string> RunSource::ask_coordinator(std::string_view name,
                                               std::string_view query) const {
  std::string path = "/api/v1/" + std::string(name);
  if (!query.empty()) path += "?" + std::string(query);
  LOCKSTEP_ASSIGN_OR_RETURN(http::HttpAnswer answer, ask_http(run_dir_, path, kAskMs));
  const nlohmann::json parsed = nlohmann::json::parse(answer.body, nullptr, false);
  // The port may be another program's by now.
  if (answer.status != 200 || !parsed.is_object())
    return Status(Code::kUnavailable, "the program at the address of the coordinator of " +
                                          run_dir_ + " is not a coordinator of this version");
  return std::move(answer.body);
}

Status RunSource::may_read_files() const {
  if (is_held(run_dir_))
    return Status(Code::kUnavailable, "the run goes on, so Lockstep does not open them");
  const bool is_told_over = stamp_of(rundir::file_in(run_dir_, rundir::kSummary)) != heard_summary_;
  if (!heard_ms_ || is_told_over || SystemClock().monotonic_ms() - *heard_ms_ >= away_ms_)
    return Status::ok();
  return Status(Code::kUnavailable,
                "a coordinator may start again, so Lockstep does not open them");
}

Result<std::string> RunSource::read_files(std::string_view name, std::string_view query) {
  const int64_t stamp = stamp_of(rundir::file_in(run_dir_, rundir::kJournal));
  if (!ended_ || stamp != ended_stamp_) {
    ended_.reset();
    LOCKSTEP_RETURN_IF_ERROR(may_read_files());
    LOCKSTEP_ASSIGN_OR_RETURN(ended_, coordinator::read_ended_run(run_dir_));
    ended_stamp_ = stamp;
  }
  using namespace coordinator;
  if (name == "job") return ended_->job();
  if (name == "status")
    return ended_->status(query_number(query, "members", limits::kMembers, limits::kMembers));
  if (name == "history")
    return ended_->history(query_number(query, "points", kHistoryPoints, Curves::kBins));
  if (name == "events")
    return ended_->events(query_number(query, "limit", kListedEvents, Timeline::kEvents));
  return Status(Code::kUsage, "there is no /api/v1/" + std::string(name));
}

Result<std::string> RunSource::get(std::string_view name, std::string_view query) {
  Result<std::string> asked = ask_coordinator(name, query);
  is_live_ = asked.is_ok();
  if (is_live_) {
    ended_.reset();
    heard_ms_ = SystemClock().monotonic_ms();
    heard_summary_ = stamp_of(rundir::file_in(run_dir_, rundir::kSummary));
    return asked;
  }
  Result<std::string> read = read_files(name, query);
  if (read.is_ok()) return read;
  return Status(Code::kUnavailable,
                asked.status().message() + ". Its files: " + read.status().message());
}

Result<nlohmann::json> RunSource::get_json(std::string_view name, std::string_view query) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, get(name, query));
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object())
    return Status(Code::kUnavailable, "the answer about " + run_dir_ + " is not a JSON object");
  return parsed;
}

}  // namespace lockstep
