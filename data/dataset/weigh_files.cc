#include "data/dataset/weigh_files.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "data/files/list_files.h"
#include "data/files/split_directory.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

Evidence weigh_names(const std::string& directory, const std::vector<std::string>& names,
                     const TakesFileFn& takes) {
  Evidence evidence;
  for (const std::string& name : names)
    if (takes(directory + "/" + name)) add_weight(directory + "/" + name, name, evidence);
  return evidence;
}

}  // namespace

void add_weight(const std::string& path, const std::string& name, Evidence& evidence) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) return;
  if (evidence.example.empty()) evidence.example = name;
  evidence.bytes += bytes;
}

Evidence weigh_files(const Listing& directory, const TakesFileFn& takes) {
  Evidence evidence = weigh_names(directory.path, directory.names, takes);
  if (!evidence.example.empty() || !has_split_directories(directory.path)) return evidence;
  for (const Split split : {Split::kTrain, Split::kEval}) {
    const std::string below = split_directory(directory.path, split);
    const auto names = list_data_files(below);
    if (!names.is_ok()) continue;
    const Evidence more = weigh_names(below, *names, takes);
    evidence.bytes += more.bytes;
    if (evidence.example.empty() && !more.example.empty())
      evidence.example = fs::path(below).filename().string() + "/" + more.example;
  }
  return evidence;
}

}  // namespace lockstep::data
