// The runs below a directory, with what tells them apart: how well each learned, how fast it was,
// and the keys in which their jobs differ.
//
// Thread-safety: free functions; list_runs() asks coordinators and reads files.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

struct ListedRun {
  std::string path;   // as it was given, and the name below
  std::string state;  // "training", "done", "stopped", "failed (70)", "interrupted", ...
  wire::JobSpec job;
  uint64_t step = 0;
  std::optional<double> eval_accuracy;
  std::optional<double> eval_loss;
  std::optional<double> samples_per_second;
  std::optional<double> wall_seconds;
  int64_t changed = 0;  // when it last wrote its job or its end, to sort by
};

// The run directory `directory` itself, or those in it, the newest first. kNoInput if there is
// neither. A directory that cannot be read as a run is listed with what is wrong as its state.
Result<std::vector<ListedRun>> list_runs(const std::string& directory);

// The values of each run for the keys that say what is trained and how, as far as the runs differ
// in them: {"optimizer.lr", "0.01"}.
std::vector<std::vector<std::pair<std::string, std::string>>> differences(
    const std::vector<wire::JobSpec>& jobs);

}  // namespace lockstep
