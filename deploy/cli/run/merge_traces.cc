#include "deploy/cli/run/merge_traces.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/run/directory/layout.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::set<std::string> rank_files(const std::string& directory) {
  std::set<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("rank-") && name.ends_with(".json")) paths.insert(it->path().string());
  }
  return paths;
}

}  // namespace

Result<std::string> merge_traces(const std::string& run_dir) {
  const std::string directory = rundir::file_in(run_dir, rundir::kTrace);
  json merged = {{"displayTimeUnit", "ms"}, {"traceEvents", json::array()}};
  for (const std::string& path : rank_files(directory)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(path, limits::kTraceFileBytes));
    json one = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!one.is_object() || !one.contains("traceEvents") || !one["traceEvents"].is_array())
      return Status(Code::kBadData, path + " is damaged");
    for (json& event : one["traceEvents"]) merged["traceEvents"].push_back(std::move(event));
  }
  if (merged["traceEvents"].empty()) return std::string();
  const std::string path = directory + "/all.json";
  LOCKSTEP_RETURN_IF_ERROR(replace_file(path, merged.dump()));
  return path;
}

}  // namespace lockstep
