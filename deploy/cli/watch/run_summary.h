// The table at the end of a run, from summary.json.
//
// Thread-safety: free functions without state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

// kNoInput if the run has no summary (yet); kBadData if it is damaged.
Result<nlohmann::json> read_summary(const std::string& run_dir);

// True if the run kept its best checkpoint (checkpoint.best): `--checkpoint best` names it.
bool has_best(const nlohmann::json& summary);

// Several lines with a newline at the end.
std::string summary_table(const nlohmann::json& summary, const std::string& run_dir);

}  // namespace lockstep
