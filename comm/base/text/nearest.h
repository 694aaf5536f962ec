// "did you mean ...?": finds the right word that is nearest to a wrong one.
//
// Thread-safety: free functions without state.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// The least number of insertions, deletions, replacements and swaps of neighbours that turn `a`
// into `b` (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

// Do only case, '-' and '_' tell the words apart? False for words of nothing else.
bool same_word(std::string_view a, std::string_view b);

// The nearest word, or "" if none is near enough. The same word in another spelling comes first:
// adamW is adamw, and not adam.
std::string_view nearest_word(std::string_view wrong, std::span<const std::string_view> right);

// "; did you mean X?" or "", to append to a message.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> right);

// "a, b or c".
std::string join_names(std::span<const std::string_view> names);

}  // namespace lockstep
