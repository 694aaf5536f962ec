#include "data/files/cached_text.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep::data {

std::optional<std::string> cached_text(const std::string& cache_dir, const std::string& name) {
  if (cache_dir.empty()) return std::nullopt;
  auto text = read_file(cache_dir + "/" + name, limits::kStatisticsFileBytes);
  if (!text.is_ok()) return std::nullopt;
  return std::move(*text);
}

void keep_text(const std::string& cache_dir, const std::string& name, const std::string& text) {
  if (cache_dir.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(cache_dir, error);
  (void)replace_file(cache_dir + "/" + name, text);
}

}  // namespace lockstep::data
