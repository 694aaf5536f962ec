#include "data/index/npy_pair.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "data/index/list_files.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kRoles[] = {"images", "labels"};

bool has_role(const std::string& name, std::string_view role) {
  return name.ends_with(".npy") && has_word(name, {role});
}

bool has_any_role(const std::string& name) {
  return has_role(name, kRoles[0]) || has_role(name, kRoles[1]);
}

// The file of a role; empty when there is none.
Result<std::string> find_array(const std::string& directory, const std::vector<std::string>& names,
                               std::string_view role, bool is_evaluation) {
  std::string found;
  for (const std::string& name : names) {
    if (!has_role(name, role) || is_for_evaluation(name) != is_evaluation) continue;
    if (!found.empty())
      return Status(Code::kBadData, "data directory " + directory + " has both " + found + " and " +
                                        name + "; leave one of them there");
    found = name;
  }
  return found;
}

}  // namespace

Result<NpyPair> find_npy_pair(const std::string& directory, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(directory));
  const bool says_split = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return has_any_role(name) && (is_for_evaluation(name) || has_word(name, {"train"}));
  });
  const bool is_evaluation = says_split && split == Split::kEval;
  std::string found[2];
  for (size_t i = 0; i < 2; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(found[i], find_array(directory, names, kRoles[i], is_evaluation));
    if (!found[i].empty()) continue;
    const char* prefix = !says_split ? "" : is_evaluation ? "test_" : "train_";
    return Status(Code::kNoInput, "data directory " + directory + " lacks " + prefix +
                                      std::string(kRoles[i]) + ".npy");
  }
  const std::filesystem::path place(directory);
  return NpyPair{(place / found[0]).string(), (place / found[1]).string(), !says_split};
}

bool has_npy_pair_names(const std::string& directory) {
  const auto names = list_data_files(directory);
  return names.is_ok() && std::any_of(names->begin(), names->end(), has_any_role);
}

}  // namespace lockstep::data
