#include "data/open/left_out.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "data/base/hidden_names.h"
#include "data/base/split.h"
#include "data/files/split_directory.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/source/base/object_names.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLooked = 100'000;  // files below one directory

// True for a file that describes shards and belongs to them.
bool is_index(const std::string& name) {
  return name == "index.json" || name.ends_with(".idx");
}

std::set<std::string> kinds_of(const std::vector<std::string>& files) {
  std::set<std::string> kinds;
  for (const std::string& file : files) {
    std::string name = fs::path(file).filename().string();
    const size_t note = name.ends_with(')') ? name.rfind(" (") : std::string::npos;
    kinds.insert(kind_of_file(name.substr(0, note)));  // "x.npz (images)", for messages
  }
  return kinds;
}

// Files that end like the taken ones.
void look_below(const fs::path& directory, const std::set<std::string>& kinds, FilesLeftOut& left) {
  std::error_code error;
  fs::recursive_directory_iterator it(directory, error);
  uint64_t files = 0;
  size_t looked = 0;
  std::string example;
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_hidden(name)) it.disable_recursion_pending();
    std::error_code unreadable;
    if (is_hidden(name) || !it->is_regular_file(unreadable)) continue;
    if (++looked > kMostLooked) break;
    if (!kinds.contains(kind_of_file(name))) continue;
    ++files;
    const std::string path = it->path().lexically_relative(directory.parent_path()).string();
    if (example.empty() || path < example) example = path;
  }
  if (files > 0)
    left.add("in directory " + directory.filename().string() + "/", example, true, files);
}

void look_in(const std::string& path, const std::string& shown, const std::set<std::string>& kinds,
             const std::set<std::string>& taken, bool with_directories, FilesLeftOut& left) {
  std::error_code error;
  fs::directory_iterator it(path, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_hidden(name) || source::is_manifest(name) || is_index(name)) continue;
    std::error_code unreadable;
    const bool is_alike = kinds.contains(kind_of_file(name));
    if (it->is_directory(unreadable)) {
      if (with_directories) look_below(it->path(), kinds, left);
    } else if (!it->is_regular_file(unreadable)) {
      left.add("link that leads nowhere", shown + name, is_alike);
    } else if (is_arrow_cache(name) && !taken.contains(name)) {
      left.add("cache of Hugging Face", shown + name, false);
    } else if (!is_alike) {
      left.add(kind_of_file(name), shown + name, false);
    }
  }
}

}  // namespace

FilesLeftOut files_left_out(const std::string& path, const std::vector<std::string>& taken) {
  FilesLeftOut left;
  std::error_code error;
  if (!fs::is_directory(path, error) || taken.empty()) return left;
  const std::set<std::string> kinds = kinds_of(taken);
  std::set<std::string> names;
  for (const std::string& file : taken) names.insert(fs::path(file).filename().string());
  const bool has_splits = has_split_directories(path);
  look_in(path, "", kinds, names, !has_splits, left);
  for (const Split split : {Split::kTrain, Split::kEval}) {
    if (!has_splits) break;
    const std::string below = split_directory(path, split);
    look_in(below, fs::path(below).filename().string() + "/", kinds, names, true, left);
  }
  return left;
}

}  // namespace lockstep::data
