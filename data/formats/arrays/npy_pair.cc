#include "data/formats/arrays/npy_pair.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "comm/base/text/lower_case.h"
#include "data/files/list_files.h"
#include "data/formats/arrays/array_choice.h"
#include "data/formats/arrays/npy_array.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kNpyEnding = ".npy";

bool is_npy_name(const std::string& name) {
  return ends_like(name, kNpyEnding);
}

}  // namespace

Result<NpyPair> find_npy_pair(const std::string& directory, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(directory));
  std::vector<NamedArray> arrays;
  for (const std::string& name : names)
    if (is_npy_name(name)) arrays.push_back({name, ""});
  LOCKSTEP_ASSIGN_OR_RETURN(const ArrayPair pair,
                            choose_arrays(arrays, split, "data directory " + directory, ".npy"));
  const std::filesystem::path place(directory);
  return NpyPair{(place / arrays[pair.images].name).string(),
                 (place / arrays[pair.labels].name).string(), pair.serves_both};
}

bool has_npy_pair_names(const std::string& directory) {
  const auto names = list_data_files(directory);
  return names.is_ok() && std::any_of(names->begin(), names->end(), [](const std::string& name) {
           return is_npy_name(name) && names_a_pair(name);
         });
}

Result<std::vector<ListedArray>> list_npy_arrays(const std::string& path) {
  std::vector<ListedArray> arrays;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return arrays;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
  for (const std::string& name : names) {
    if (!is_npy_name(name)) continue;
    const auto open = [file = (std::filesystem::path(path) / name).string()](
                          const std::string&, const ProgressFn&) { return open_npy_file(file); };
    arrays.push_back({name.substr(0, name.size() - kNpyEnding.size()), "", open});
  }
  return arrays;
}

}  // namespace lockstep::data
