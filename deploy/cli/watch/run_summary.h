// The table at the end of a run, from summary.json.
// Thread-safety: free functions without state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

// kNoInput when the run has none (yet); kBadData when it is damaged.
Result<nlohmann::json> read_summary(const std::string& run_dir);

// Several lines, newline at the end. `program`: how to call us, for the commands to try next.
std::string summary_table(const nlohmann::json& summary, const std::string& run_dir);

// "Try next" for a run that finished.
std::string next_commands(const std::string& run_dir);

}  // namespace lockstep
