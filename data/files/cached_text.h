// What it costs reading a whole dataset to know, kept as a small text file in the cache directory.
// Whoever reads it checks that it says what they would have written: anybody may have changed it.
//
// Thread-safety: free functions without state; files are replaced whole.
#pragma once

#include <optional>
#include <string>

namespace lockstep::data {

// Nothing where `cache_dir` is empty, or has no such file, or one that cannot be read.
std::optional<std::string> cached_text(const std::string& cache_dir, const std::string& name);

// Failing to keep it is no reason to stop a run: the caller has what it says. An empty `cache_dir`
// keeps nothing.
void keep_text(const std::string& cache_dir, const std::string& name, const std::string& text);

}  // namespace lockstep::data
