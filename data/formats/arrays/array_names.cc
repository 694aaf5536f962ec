#include "data/formats/arrays/array_names.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "comm/base/text/lower_case.h"
#include "data/base/file_errors.h"
#include "data/files/list_files.h"

namespace lockstep::data {
namespace {

constexpr size_t kNamesInMessage = 12;
constexpr std::array<std::string_view, 2> kWordsOfTraining = {"train", "training"};
// The first word with arrays names the evaluation split.
constexpr std::array<std::string_view, 7> kWordsOfEvaluation = {
    "val", "valid", "validation", "eval", "evaluation", "test", "testing"};

bool is_separator(char c) {
  return c == '_' || c == '-' || c == '.';
}

// Whether `name` is `wanted` with this word before or after it.
bool is_with_word(std::string_view name, std::string_view wanted, std::string_view word) {
  if (name.size() != wanted.size() + word.size() + 1) return false;
  const bool is_before = is_separator(name[word.size()]) && name.ends_with(wanted) &&
                         lower_case(name.substr(0, word.size())) == word;
  const bool is_behind = is_separator(name[wanted.size()]) && name.starts_with(wanted) &&
                         lower_case(name.substr(wanted.size() + 1)) == word;
  return is_before || is_behind;
}

template <size_t n>
std::optional<std::string_view> word_in(const std::string& text,
                                        const std::array<std::string_view, n>& words) {
  for (const std::string_view word : words)
    if (has_word(text, {word})) return word;
  return std::nullopt;
}

// An array that has a wanted name. `word`: says the split; empty: nothing does.
struct Match {
  size_t array = 0;
  std::string_view word;

  bool is_evaluation() const {
    return std::find(kWordsOfEvaluation.begin(), kWordsOfEvaluation.end(), word) !=
           kWordsOfEvaluation.end();
  }
};

std::string_view split_word(const std::string& text) {
  const auto evaluation = word_in(text, kWordsOfEvaluation);
  return evaluation ? *evaluation : word_in(text, kWordsOfTraining).value_or("");
}

std::optional<std::string_view> match_word(const NamedArray& array, const WantedArray& wanted) {
  if (wanted.name.empty()) {
    const bool is_it =
        wanted.role == FieldRole::kInput ? names_images(array.name) : names_labels(array.name);
    if (!is_it) return std::nullopt;
    const std::string_view word = split_word(array.name);
    return word.empty() ? split_word(array.file) : word;
  }
  if (array.name == wanted.name) return split_word(array.file);
  const auto is_it = [&](std::string_view word) {
    return is_with_word(array.name, wanted.name, word);
  };
  for (const std::string_view word : kWordsOfEvaluation)
    if (is_it(word)) return word;
  for (const std::string_view word : kWordsOfTraining)
    if (is_it(word)) return word;
  return std::nullopt;
}

using Matches = std::vector<std::vector<Match>>;  // by wanted array

Matches matches_of(const std::vector<NamedArray>& arrays, const std::vector<WantedArray>& wanted) {
  Matches all(wanted.size());
  std::vector<bool> is_named(arrays.size());
  // Named arrays first: an array that the job names is no candidate for an unnamed one.
  for (const bool has_name : {true, false}) {
    for (size_t w = 0; w < wanted.size(); ++w) {
      if (wanted[w].name.empty() == has_name) continue;
      for (size_t i = 0; i < arrays.size(); ++i) {
        const auto word = match_word(arrays[i], wanted[w]);
        if (!word || (!has_name && is_named[i])) continue;
        if (has_name) is_named[i] = true;
        all[w].push_back({i, *word});
      }
    }
  }
  return all;
}

bool says_any_split(const Matches& matches) {
  return std::any_of(matches.begin(), matches.end(), [](const auto& of_one) {
    return std::any_of(of_one.begin(), of_one.end(),
                       [](const Match& match) { return !match.word.empty(); });
  });
}

// The word that says evaluation here.
std::string_view word_of_evaluation(const Matches& matches) {
  for (const std::string_view word : kWordsOfEvaluation)
    for (const auto& of_one : matches)
      if (std::any_of(of_one.begin(), of_one.end(),
                      [&](const Match& match) { return match.word == word; }))
        return word;
  return "test";
}

void keep_split(Matches& matches, Split split) {
  const std::string_view word = word_of_evaluation(matches);
  for (auto& of_one : matches)
    std::erase_if(of_one, [&](const Match& match) {
      return split == Split::kEval ? match.word != word : match.is_evaluation();
    });
}

std::string role_text(const WantedArray& wanted) {
  const bool is_input = wanted.role == FieldRole::kInput;
  if (wanted.name.empty()) return is_input ? "images, x or image" : "labels, y or label";
  return wanted.name;
}

std::string key_of(const WantedArray& wanted) {
  if (wanted.role == FieldRole::kInput) return "data.inputs";
  return wanted.role == FieldRole::kTarget ? "data.targets" : "data.weight";
}

std::string names_there(const std::vector<NamedArray>& arrays) {
  if (arrays.empty()) return "has no arrays";
  std::string text = "has ";
  for (size_t i = 0; i < std::min(arrays.size(), kNamesInMessage); ++i)
    text += (i == 0 ? "" : ", ") + arrays[i].name;
  const size_t more = arrays.size() - std::min(arrays.size(), kNamesInMessage);
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

// One of each from every file, in the order of the files; `matches` has several of some.
Result<std::vector<std::vector<size_t>>> by_file(const std::vector<NamedArray>& arrays,
                                                 const std::vector<WantedArray>& wanted,
                                                 const Matches& matches, const std::string& where) {
  std::vector<std::string> files;
  for (const auto& of_one : matches)
    for (const Match& match : of_one) files.push_back(arrays[match.array].file);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::vector<std::vector<size_t>> groups;
  for (const std::string& file : files) {
    std::vector<size_t>& group = groups.emplace_back();
    for (size_t w = 0; w < wanted.size(); ++w) {
      std::optional<size_t> found;
      for (const Match& match : matches[w]) {
        if (arrays[match.array].file != file) continue;
        if (found)
          return bad(where + " has both " + arrays[*found].name + " and " +
                     arrays[match.array].name + "; leave one of them there");
        found = match.array;
      }
      if (!found)
        return bad(where + " has no array " + role_text(wanted[w]) + " (" + key_of(wanted[w]) +
                   ") in " + file + ", but in other files; write all files alike");
      group.push_back(*found);
    }
  }
  return groups;
}

}  // namespace

std::vector<WantedArray> wanted_arrays(const ColumnNames& columns) {
  std::vector<WantedArray> wanted;
  for (const std::string& name : columns.inputs) wanted.push_back({name, FieldRole::kInput});
  if (columns.inputs.empty()) wanted.push_back({"", FieldRole::kInput});
  for (const std::string& name : columns.targets) wanted.push_back({name, FieldRole::kTarget});
  if (columns.targets.empty()) wanted.push_back({"", FieldRole::kTarget});
  if (!columns.weight.empty()) wanted.push_back({columns.weight, FieldRole::kWeight});
  return wanted;
}

Result<ArrayGroups> choose_by_name(const std::vector<NamedArray>& arrays,
                                   const std::vector<WantedArray>& wanted, Split split,
                                   const std::string& where, bool is_of_split) {
  for (size_t w = 0; w < wanted.size(); ++w)
    for (size_t v = 0; v < w; ++v)
      if (!wanted[w].name.empty() && wanted[w].name == wanted[v].name)
        return Status(Code::kUsage, key_of(wanted[w]) + " names " + wanted[w].name +
                                        ", and so does " + key_of(wanted[v]) +
                                        "; name each array once");
  Matches matches = matches_of(arrays, wanted);
  const bool says_split = !is_of_split && says_any_split(matches);
  if (says_split) keep_split(matches, split);
  bool has_any = false;
  bool has_several = false;
  for (const auto& of_one : matches) {
    has_any = has_any || !of_one.empty();
    has_several = has_several || of_one.size() > 1;
  }
  for (size_t w = 0; w < wanted.size(); ++w) {
    if (!matches[w].empty()) continue;
    const std::string of_split = !says_split              ? ""
                                 : split == Split::kTrain ? " for training"
                                                          : " for evaluation";
    return Status(has_any ? Code::kBadData : Code::kNoInput,
                  where + " has no array called " + role_text(wanted[w]) + of_split + " (" +
                      key_of(wanted[w]) + "); it " + names_there(arrays) +
                      ". Correct the name, or add the array");
  }
  ArrayGroups chosen;
  chosen.serves_both = !is_of_split && !says_split;
  if (has_several) {
    LOCKSTEP_ASSIGN_OR_RETURN(chosen.groups, by_file(arrays, wanted, matches, where));
    return chosen;
  }
  std::vector<size_t>& group = chosen.groups.emplace_back();
  for (const auto& of_one : matches) group.push_back(of_one.front().array);
  return chosen;
}

bool has_any_name(const std::vector<NamedArray>& arrays, const std::vector<WantedArray>& wanted) {
  const Matches matches = matches_of(arrays, wanted);
  return std::any_of(matches.begin(), matches.end(),
                     [](const auto& of_one) { return !of_one.empty(); });
}

}  // namespace lockstep::data
