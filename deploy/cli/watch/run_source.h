// What the status page shows of a run, wherever it can be had: from the coordinator while one
// answers, else from the files in the run directory. The one place where the tools that watch a run
// ask for it.
//
// Thread-safety: one thread. get() blocks for at most kAskMs, or as long as reading the files
// takes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "coordinator/report/ended_run.h"

namespace lockstep {

class RunSource {
 public:
  static constexpr int64_t kAskMs = 3'000;
  static constexpr int64_t kAwayMs = 10'000;  // in which an agent has started a coordinator again

  // kNoInput when there is no run in `run_dir`.
  static Result<RunSource> open(const std::string& run_dir);

  // The JSON text of a path below /api/v1/ (status, history, events) with its query. kUnavailable
  // when neither a coordinator answers nor the files can be read, such as while one starts.
  Result<std::string> get(std::string_view name, std::string_view query);
  // Parsed; what is no object is an error.
  Result<nlohmann::json> get_json(std::string_view name, std::string_view query);

  // False after a get() that was answered from the files.
  bool is_live() const { return is_live_; }
  const std::string& run_dir() const { return run_dir_; }  // absolute

 private:
  explicit RunSource(std::string run_dir) : run_dir_(std::move(run_dir)) {}
  Result<std::string> ask_coordinator(std::string_view name, std::string_view query) const;
  Status may_read_files() const;
  Result<std::string> read_files(std::string_view name, std::string_view query);

  std::string run_dir_;
  bool is_live_ = false;
  std::optional<int64_t> heard_ms_;  // when the coordinator last answered,
  int64_t heard_summary_ = 0;        // and which summary was there then
  std::optional<coordinator::EndedRun> ended_;
  int64_t ended_stamp_ = 0;  // of the journal that it was read from
};

}  // namespace lockstep
