#include "comm/base/text/nearest.h"

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep {
namespace {

// The word in lower case, without hyphens and underscores.
std::string plain(std::string_view word) {
  std::string out;
  for (const char c : word) {
    if (c == '-' || c == '_') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  const std::string word = plain(a);
  return !word.empty() && word == plain(b);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last;
  std::vector<size_t> last(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row(b.size() + 1);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last[b.size()];
}

std::string_view nearest_word(std::string_view wrong, std::span<const std::string_view> right) {
  constexpr size_t kLongestWord = 100;  // a longer word is no typing mistake, and costs time
  if (wrong.size() > kLongestWord) return "";
  for (std::string_view word : right)
    if (same_word(word, wrong)) return word;
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, wrong.size() / 3) + 1;
  for (std::string_view word : right) {
    const size_t distance = edit_distance(wrong, word);
    if (distance < best_distance && distance < word.size()) {
      best = word;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> right) {
  const std::string_view word = nearest_word(wrong, right);
  return word.empty() ? "" : "; did you mean " + std::string(word) + "?";
}

std::string join_names(std::span<const std::string_view> names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

}  // namespace lockstep
