#include "deploy/cli/job/job_hints.h"

#include <algorithm>
#include <vector>

#include "comm/base/log.h"
#include "comm/base/text/nearest.h"
#include "deploy/cli/keys/job_list.h"

namespace lockstep {
namespace {

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

// Our key for a name that other programs use.
std::string_view known_elsewhere(std::string_view key) {
  for (const JobKey& row : job_keys())
    for (const std::string_view word : row.elsewhere) {
      const bool is_whole = word.find('.') != std::string_view::npos;
      if (same_word(word, is_whole ? key : last_part(key))) return row.key;
    }
  return "";
}

// The key with this last word that needs the fewest changes.
std::string_view in_another_place(std::string_view key) {
  const JobKey* best = nullptr;
  for (const JobKey& row : job_keys()) {
    if (!list_of(row).empty() || !same_word(last_part(row.key), last_part(key))) continue;
    if (best == nullptr || edit_distance(key, row.key) < edit_distance(key, best->key)) best = &row;
  }
  return best == nullptr ? "" : best->key;
}

// "training" and "optim" are longer and shorter words for a group.
std::string_view group_with_this_stem(std::string_view key) {
  constexpr size_t kShortest = 4;
  constexpr size_t kLongestEnding = 5;
  if (key.find_first_of("._-") != std::string_view::npos || key.size() < kShortest) return "";
  for (const JobKey& row : job_keys()) {
    const size_t dot = row.key.find('.');
    if (dot == std::string_view::npos) continue;
    const std::string_view group = row.key.substr(0, dot);
    const bool is_longer = key.starts_with(group) && key.size() <= group.size() + kLongestEnding;
    if (is_longer || group.starts_with(key)) return group;
  }
  return "";
}

std::string_view nearest_key(const std::string& key) {
  std::vector<std::string_view> words;
  std::vector<std::string_view> last_words;
  for (const JobKey& row : job_keys()) {
    words.push_back(row.key);
    last_words.push_back(last_part(row.key));
  }
  const std::string_view nearest = nearest_word(key, words);
  if (!nearest.empty()) return nearest;
  const std::string_view last = nearest_word(last_part(key), last_words);
  const auto at = std::find(last_words.begin(), last_words.end(), last);
  return last.empty() ? "" : words[static_cast<size_t>(at - last_words.begin())];
}

}  // namespace

Status unknown_job_key(const std::string& key) {
  constexpr size_t kShown = 120;
  const std::string cut = key.substr(0, kShown);
  std::string_view meant = known_elsewhere(cut);
  if (meant.empty()) meant = in_another_place(cut);
  if (meant.empty()) meant = group_with_this_stem(cut);
  if (meant.empty()) meant = nearest_key(cut);
  const std::string hint = meant.empty() ? "; 'lockstep run --help-job' lists all keys"
                                         : "; did you mean " + std::string(meant) + "?";
  return Status(Code::kUsage, "unknown key " + json_escape(cut) + hint);
}

std::string job_value_hint(const JobKey& key, const std::string& text) {
  for (const ValueElsewhere& other : key.values_elsewhere) {
    const bool is_it = std::any_of(other.words.begin(), other.words.end(),
                                   [&](std::string_view word) { return same_word(word, text); });
    if (!is_it) continue;
    return other.instead.empty() ? "; " + std::string(other.advice)
                                 : "; did you mean " + std::string(other.instead) + "?";
  }
  return did_you_mean(text, key.names);
}

}  // namespace lockstep
