// "did you mean ...?": the nearest of the right words to a wrong one.
// Thread-safety: free functions without state.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
// (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest word, or "" where none is near enough to be what was meant.
std::string_view nearest_word(std::string_view wrong, std::span<const std::string_view> right);

// "; did you mean X?" or "", to be put behind a message.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> right);

// "a, b or c".
std::string join_names(std::span<const std::string_view> names);

}  // namespace lockstep
