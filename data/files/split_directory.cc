#include "data/files/split_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "comm/base/text/lower_case.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kForTraining = {"train", "training"};
// Best first.
constexpr std::array<std::string_view, 8> kForEvaluation = {
    "val", "valid", "validation", "dev", "test", "testing", "eval", "evaluation"};
constexpr std::array<std::string_view, 5> kLikeSplits = {"trn", "tst", "holdout", "unlabeled",
                                                         "extra"};

// The directory with the best of the names. A name in exactly this case comes first, then the first
// other case by its bytes, which is in upper case. Empty if there is none.
std::string directory_called(const std::string& path, std::span<const std::string_view> names) {
  std::error_code error;
  for (const std::string_view name : names) {
    const std::string as_it_is = path + "/" + std::string(name);
    if (fs::is_directory(as_it_is, error)) return as_it_is;
  }
  std::vector<std::string> found(names.size());
  fs::directory_iterator it(path, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const auto rank = static_cast<size_t>(std::find(names.begin(), names.end(), lower_case(name)) -
                                          names.begin());
    std::error_code unreadable;
    if (rank == names.size() || !it->is_directory(unreadable)) continue;
    if (found[rank].empty() || name < found[rank]) found[rank] = name;
  }
  for (const std::string& name : found)
    if (!name.empty()) return path + "/" + name;
  return {};
}

}  // namespace

bool has_split_directories(const std::string& path) {
  return !directory_called(path, kForTraining).empty() &&
         !directory_called(path, kForEvaluation).empty();
}

std::string split_directory(const std::string& path, Split split) {
  return split == Split::kTrain ? directory_called(path, kForTraining)
                                : directory_called(path, kForEvaluation);
}

bool is_named_like_split(const std::string& name) {
  const std::string lower = lower_case(name);
  const auto has = [&](const auto& names) {
    return std::find(names.begin(), names.end(), lower) != names.end();
  };
  return has(kForTraining) || has(kForEvaluation) || has(kLikeSplits);
}

}  // namespace lockstep::data
