#include "data/formats/arrays/array_choice.h"

#include <algorithm>
#include <optional>

#include "data/files/list_files.h"

namespace lockstep::data {
namespace {

constexpr const char* kRoles[] = {"images", "labels"};
// The first word with arrays names the evaluation split.
constexpr const char* kEvalWords[] = {"val", "valid", "validation", "eval", "test"};

bool has_role(const std::string& name, size_t role) {
  return role == 0 ? names_images(name) : names_labels(name);
}

bool says(const NamedArray& array, const char* word) {
  return has_word(array.name, {word}) || has_word(array.file, {word});
}

bool is_evaluation(const NamedArray& array) {
  return is_for_evaluation(array.name) || is_for_evaluation(array.file);
}

// The only one that `fits`, if any.
template <typename Fits>
Result<std::optional<size_t>> find_only(const std::vector<NamedArray>& arrays,
                                        const std::string& where, const Fits& fits) {
  std::optional<size_t> found;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!fits(arrays[i])) continue;
    if (found)
      return Status(Code::kBadData, where + " has both " + arrays[*found].name + " and " +
                                        arrays[i].name + "; leave one of them there");
    found = i;
  }
  return found;
}

// The word that says evaluation in this set.
const char* eval_word(const std::vector<NamedArray>& arrays) {
  for (const char* word : kEvalWords)
    if (std::any_of(arrays.begin(), arrays.end(),
                    [&](const NamedArray& a) { return names_a_pair(a.name) && says(a, word); }))
      return word;
  return "test";
}

}  // namespace

bool names_images(const std::string& name) {
  return has_word(name, {"images", "image", "x"});
}

bool names_labels(const std::string& name) {
  return has_word(name, {"labels", "label", "y"});
}

bool names_a_pair(const std::string& name) {
  return names_images(name) || names_labels(name);
}

Result<ArrayPair> choose_arrays(const std::vector<NamedArray>& arrays, Split split,
                                const std::string& where, const std::string& ending) {
  const bool says_split = std::any_of(arrays.begin(), arrays.end(), [](const NamedArray& a) {
    return names_a_pair(a.name) && (is_evaluation(a) || says(a, "train"));
  });
  const bool wants_eval = says_split && split == Split::kEval;
  const char* word = eval_word(arrays);
  size_t found[2] = {};
  for (size_t role = 0; role < 2; ++role) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto only, find_only(arrays, where, [&](const NamedArray& a) {
                                return has_role(a.name, role) &&
                                       (wants_eval ? says(a, word) : !is_evaluation(a));
                              }));
    if (!only)
      return Status(Code::kNoInput, where + " has no array called " +
                                        (!says_split  ? ""
                                         : wants_eval ? std::string(word) + "_"
                                                      : "train_") +
                                        kRoles[role] + ending);
    found[role] = *only;
  }
  return ArrayPair{found[0], found[1], !says_split};
}

}  // namespace lockstep::data
