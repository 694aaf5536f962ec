#include "data/files/list_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

#include "comm/base/limits.h"
#include "data/base/hidden_names.h"
#include "data/source/base/object_names.h"

namespace lockstep::data {

namespace fs = std::filesystem;

Result<std::vector<std::string>> list_data_files(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error))
    return Status(Code::kNoInput, "data directory " + directory + " does not exist");
  if (!fs::is_directory(directory, error))
    return Status(Code::kNoInput,
                  directory + " is not a directory; name the one that holds the files");
  std::vector<std::string> names;
  fs::directory_iterator it(directory, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    std::string name = it->path().filename().string();
    if (it->is_regular_file(unreadable) && !is_hidden(name) && !source::is_manifest(name))
      names.push_back(std::move(name));
    if (names.size() > limits::kDataDirectoryEntries)
      return Status(Code::kNoInput, "data directory " + directory + " holds more than " +
                                        std::to_string(limits::kDataDirectoryEntries) +
                                        " files; name the one with the data files only");
  }
  if (error)
    return Status(Code::kNoInput,
                  "cannot read data directory " + directory + ": " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool has_word(const std::string& name, std::initializer_list<std::string_view> words) {
  std::string word;
  const auto is_wanted = [&] { return std::find(words.begin(), words.end(), word) != words.end(); };
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (is_wanted()) return true;
    word.clear();
  }
  return is_wanted();
}

bool is_for_evaluation(const std::string& name) {
  return has_word(name, {"val", "valid", "validation", "test", "testing", "eval", "evaluation"});
}

bool is_for_evaluation(const std::string& name, const std::vector<std::string>& beside) {
  if (is_for_evaluation(name)) return true;
  return has_word(name, {"dev"}) &&
         std::any_of(beside.begin(), beside.end(), [](const auto& other) {
           return has_word(other, {"train", "training"});
         });
}

}  // namespace lockstep::data
