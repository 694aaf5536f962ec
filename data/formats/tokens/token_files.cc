#include "data/formats/tokens/token_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "comm/base/text/lower_case.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/tokens/megatron_index.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr char kBinEnding[] = ".bin";
constexpr char kArrayEnding[] = ".npy";
constexpr char kTensorEnding[] = ".safetensors";
constexpr char kIndexEnding[] = ".idx";
constexpr char kTextEnding[] = ".txt";

using Names = std::vector<std::string>;

bool leads_to_directory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

TokenFiles named_file(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) return Names{path};
  return Status(Code::kNoInput, "data " + path + " is not there");
}

// The directory's files with this ending that belong to the split.
TokenFiles files_in(const std::string& directory, const Names& names, const std::string& ending,
                    Split split) {
  Names paths;
  Names all;
  for (const std::string& name : names)
    if (ends_like(name, ending)) all.push_back(name);
  if (all.empty()) all = names;  // the job named the format, so endings do not count
  for (const std::string& name : all) {
    const bool is_wanted = is_for_evaluation(name, all) == (split == Split::kEval);
    if (is_wanted) paths.push_back((fs::path(directory) / name).string());
  }
  if (!paths.empty()) return paths;
  return Status(Code::kNoInput,
                "data directory " + directory + " holds no file *" + ending +
                    (split == Split::kEval ? " with \"val\", \"test\" or \"eval\" in its name"
                                           : " for training"));
}

TokenFiles find_files(const std::string& path, const std::string& ending, Split split) {
  if (!leads_to_directory(path)) return named_file(path);
  LOCKSTEP_ASSIGN_OR_RETURN(const Names names, list_data_files(path));
  return files_in(path, names, ending, split);
}

// Drops empty files, which teach nothing, like empty shards or documents. If all are empty, reading
// the first says so.
TokenFiles without_empty(TokenFiles files) {
  if (!files.is_ok()) return files;
  const auto is_empty = [](const std::string& file) {
    std::error_code error;
    return fs::file_size(file, error) == 0 && !error;
  };
  if (!std::all_of(files->begin(), files->end(), is_empty)) std::erase_if(*files, is_empty);
  return files;
}

// Tokens lie in *.bin, where a directory has none in *.npy, and else in *.safetensors.
std::string ending_of(const Names& names) {
  const auto any = [&](std::string_view ending) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return ends_like(name, ending); });
  };
  if (any(kBinEnding)) return kBinEnding;
  return any(kArrayEnding) || !any(kTensorEnding) ? kArrayEnding : kTensorEnding;
}

// The prefix of a pair, from either file or from the prefix itself.
std::string without_ending(const std::string& path) {
  return path.ends_with(kBinEnding) || path.ends_with(kIndexEnding)
             ? path.substr(0, path.size() - 4)
             : path;
}

// The *.bin of a pair that is named by either file or its prefix.
Result<std::string> bin_of_pair(const std::string& path) {
  const std::string prefix = without_ending(path);
  for (const char* ending : {kIndexEnding, kBinEnding}) {
    std::error_code error;
    if (fs::is_regular_file(prefix + ending, error)) continue;
    return Status(Code::kNoInput, prefix + ending +
                                      " is not there; an indexed dataset of Megatron-LM is a pair "
                                      "of *.bin and *.idx");
  }
  return prefix + kBinEnding;
}

}  // namespace

TokenFiles find_token_bins(const std::string& path, Split split) {
  if (!leads_to_directory(path)) return named_file(path);
  LOCKSTEP_ASSIGN_OR_RETURN(const Names names, list_data_files(path));
  return without_empty(files_in(path, names, ending_of(names), split));
}

TokenFiles find_bare_bins(const std::string& path, Split split) {
  return without_empty(find_files(path, kBinEnding, split));
}

TokenFiles find_text_files(const std::string& path, Split split) {
  return without_empty(find_files(path, kTextEnding, split));
}

TokenFiles find_megatron_bins(const std::string& path, Split split) {
  Names paths{path};
  if (leads_to_directory(path)) {
    LOCKSTEP_ASSIGN_OR_RETURN(paths, find_files(path, kIndexEnding, split));
  }
  for (std::string& each : paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(each, bin_of_pair(each));
  }
  return paths;
}

TokenFiles find_arrow_tokens(const std::string& path, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(path, split));
  Names files;
  for (const std::string& name : shards.names) files.push_back(shards.directory + "/" + name);
  return files;
}

bool is_text_name(const std::string& path) {
  return ends_like(path, kTextEnding);
}
bool is_token_name(const std::string& path) {
  return ends_like(path, kBinEnding) || ends_like(path, kArrayEnding) ||
         ends_like(path, kTensorEnding);
}

bool is_megatron_file(const std::string& path) {
  const std::string prefix = without_ending(path);
  std::error_code error;
  if (!fs::is_regular_file(prefix + kBinEnding, error)) return false;
  const auto index = MappedFile::open(prefix + kIndexEnding);
  return index.is_ok() && is_megatron_index(index->bytes());
}

std::string megatron_index_of(const std::string& path) {
  return without_ending(path) + kIndexEnding;
}

}  // namespace lockstep::data
