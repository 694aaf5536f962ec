#include "data/files/split_directory.h"

#include <filesystem>
#include <system_error>

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

// Empty where there is none.
std::string directory_for_evaluation(const std::string& path) {
  std::error_code error;
  for (const char* name : {"val", "valid", "validation", "test", "eval"})
    if (fs::is_directory(path + "/" + name, error)) return path + "/" + name;
  return {};
}

}  // namespace

bool has_split_directories(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path + "/train", error) && !directory_for_evaluation(path).empty();
}

std::string split_directory(const std::string& path, Split split) {
  return split == Split::kTrain ? path + "/train" : directory_for_evaluation(path);
}

}  // namespace lockstep::data
