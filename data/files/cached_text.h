// Keeps facts that cost reading a whole dataset, as a small text file in the cache directory. A
// reader checks that the text says what the reader would have written: any program may have changed
// it.
//
// Thread-safety: free functions without state; files are replaced whole.
#pragma once

#include <optional>
#include <string>

namespace lockstep::data {

// Empty if `cache_dir` is empty, or has no such file, or the file cannot be read.
std::optional<std::string> cached_text(const std::string& cache_dir, const std::string& name);

// Reports no failure: the caller already has the facts, so the run goes on. With an empty
// `cache_dir` it keeps nothing.
void keep_text(const std::string& cache_dir, const std::string& name, const std::string& text);

}  // namespace lockstep::data
