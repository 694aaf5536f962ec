// The data of the status page: from the coordinator while it answers, else from the files in the
// run directory. All tools that watch a run ask here.
//
// Thread-safety: one thread. get() blocks for at most kAskMs, or as long as reading the files
// takes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "coordinator/report/ended_run.h"

namespace lockstep {

// True if a process on this machine holds a lock of the run: the run goes on. Takes no lock itself,
// which would be in the way of a process that wants it.
bool is_held(const std::string& run_dir);

class RunSource {
 public:
  static constexpr int64_t kAskMs = 3'000;
  static constexpr int64_t kAwayMs = 10'000;  // an agent restarts a coordinator within this time
  // After so long without a coordinator, the workers of its run give up, too.
  static constexpr int64_t kGoneMs = limits::kCoordinatorAwayMs;

  // kNoInput if `run_dir` holds no run.
  static Result<RunSource> open(const std::string& run_dir);

  // The JSON text of a path below /api/v1/ (status, history, events, job) with its query.
  // kUnavailable if no coordinator answers and the files cannot be read, such as while a
  // coordinator starts.
  Result<std::string> get(std::string_view name, std::string_view query);
  // The same, parsed. An error unless it is an object.
  Result<nlohmann::json> get_json(std::string_view name, std::string_view query);

  // From now on get() reads the files only if the run has told its end, or its coordinator has not
  // answered for `away_ms`: for a reader that follows the run.
  void wait_for_coordinator(int64_t away_ms) { away_ms_ = away_ms; }

  // False if the files answered the last get().
  bool is_live() const { return is_live_; }
  const std::string& run_dir() const { return run_dir_; }  // absolute

 private:
  explicit RunSource(std::string run_dir) : run_dir_(std::move(run_dir)) {}
  Result<std::string> ask_coordinator(std::string_view name, std::string_view query) const;
  Status may_read_files() const;
  Result<std::string> read_files(std::string_view name, std::string_view query);

  std::string run_dir_;
  bool is_live_ = false;
  int64_t away_ms_ = kAwayMs;
  std::optional<int64_t> heard_ms_;  // when the coordinator last answered,
  int64_t heard_summary_ = 0;        // and which summary was there then
  std::optional<coordinator::EndedRun> ended_;
  int64_t ended_stamp_ = 0;  // of the journal that it was read from
};

}  // namespace lockstep
