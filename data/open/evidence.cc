#include "data/open/evidence.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>

#include "comm/base/check.h"
#include "data/base/hidden_names.h"
#include "data/files/list_files.h"
#include "data/files/split_directory.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/shards/tfrecord.h"
#include "data/formats/shards/webdataset.h"
#include "data/formats/tables/csv_dataset.h"
#include "data/formats/tables/parquet_files.h"
#include "data/formats/tokens/token_files.h"
#include "data/image/image_info.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kClearly = 2;          // times as many bytes
constexpr size_t kImagesWeighed = 4'096;  // enough to outweigh what is stray

using TakesFn = std::function<bool(const std::string& path)>;

void add_file(const std::string& path, const std::string& name, Evidence& evidence) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) return;
  if (evidence.example.empty()) evidence.example = name;
  evidence.bytes += bytes;
}

Evidence weigh(const std::string& directory, const std::vector<std::string>& names,
               const TakesFn& takes) {
  Evidence evidence;
  for (const std::string& name : names)
    if (takes(directory + "/" + name)) add_file(directory + "/" + name, name, evidence);
  return evidence;
}

Evidence weigh(const Listing& directory, const TakesFn& takes) {
  Evidence evidence = weigh(directory.path, directory.names, takes);
  if (!evidence.example.empty() || !has_split_directories(directory.path)) return evidence;
  for (const Split split : {Split::kTrain, Split::kEval}) {
    const std::string below = split_directory(directory.path, split);
    const auto names = list_data_files(below);
    if (!names.is_ok()) continue;
    const Evidence more = weigh(below, *names, takes);
    evidence.bytes += more.bytes;
    if (evidence.example.empty() && !more.example.empty())
      evidence.example = fs::path(below).filename().string() + "/" + more.example;
  }
  return evidence;
}

bool is_text(const std::string& path) {
  return is_text_name(path);
}

// Text that tells of other data.
bool describes(const std::string& path) {
  return has_word(
      fs::path(path).stem().string(),
      {"readme",   "license",      "licence",     "copying",    "notice", "authors", "changelog",
       "citation", "requirements", "description", "words",      "wnids",  "classes", "class",
       "labels",   "names",        "synsets",     "categories", "about",  "info"});
}

bool is_any_of(const std::string& format, std::initializer_list<std::string_view> formats) {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

// Of images.
bool is_tree(const std::string& format) {
  return is_any_of(format, {"image_folder", "image_mask"});
}

bool is_shards_or_images(const std::string& format) {
  return is_any_of(format, {"webdataset", "tfrecord", "arrow", "arrow_images", "arrow_tokens",
                            "image_folder", "image_mask", "parquet"});
}

// Rule 2.
std::vector<Candidate> without_descriptions(std::vector<Candidate> candidates) {
  const auto any = [&](const auto& fits) {
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const Candidate& c) { return fits(c.format); });
  };
  const bool has_main = any(is_shards_or_images);
  const bool has_tokens = any([](const std::string& f) { return f == "tokens"; });
  std::erase_if(candidates, [&](const Candidate& c) {
    return (has_main && c.format == "csv") || (has_tokens && c.format == "text");
  });
  return candidates;
}

struct Weighed {
  std::string format;
  Evidence evidence;
};

std::string shown_candidate(const Weighed& one) {
  return one.format + " (" + one.evidence.example + ", " + std::to_string(one.evidence.bytes) +
         " bytes)";
}

Status is_open(const std::string& path, const Weighed& a, const Weighed& b) {
  return {Code::kUsage,
          "data directory " + path + " may be of format " + shown_candidate(a) + " or " +
              shown_candidate(b) +
              "; set data.train.format to one of them, or move the files of the other "
              "to another directory"};
}

}  // namespace

Result<std::string> strongest(const Listing& directory, const std::vector<Candidate>& all) {
  LOCKSTEP_CHECK(!all.empty(), "there is a candidate");
  if (all.size() == 1 || all.front().probe->weigh == nullptr) return all.front().format;
  const std::vector<Candidate> candidates = without_descriptions(all);
  if (candidates.size() == 1) return candidates.front().format;
  std::vector<Weighed> weighed;
  for (const Candidate& one : candidates)
    weighed.push_back(
        {one.format, one.probe->weigh == nullptr ? Evidence() : one.probe->weigh(directory)});
  const Weighed& first = weighed.front();
  const Weighed& most = *std::max_element(
      weighed.begin(), weighed.end(),
      [](const Weighed& a, const Weighed& b) { return a.evidence.bytes < b.evidence.bytes; });
  if (&most == &first) {
    // Rule 4, for text that has a little more.
    const auto images = std::find_if(weighed.begin(), weighed.end(),
                                     [](const Weighed& w) { return is_tree(w.format); });
    const bool is_weak = is_any_of(first.format, {"text", "csv"});
    if (images != weighed.end() && is_weak &&
        first.evidence.bytes / kClearly < images->evidence.bytes)
      return images->format;
    return first.format;
  }
  const bool is_clear = first.evidence.bytes <= most.evidence.bytes / kClearly ||
                        (is_tree(most.format) && first.format == "text");
  if (is_clear) return most.format;
  return is_open(directory.path, first, most);
}

namespace weight {

Evidence of_tars(const Listing& directory) {
  return weigh(directory, is_tar_file);
}
Evidence of_tfrecords(const Listing& directory) {
  return weigh(directory, is_tfrecord_file);
}
Evidence of_arrow(const Listing& directory) {
  return weigh(directory, has_arrow_ending);
}
Evidence of_tokens(const Listing& directory) {
  return weigh(directory, is_token_name);
}
Evidence of_text(const Listing& directory) {
  Evidence evidence =
      weigh(directory, [](const std::string& path) { return is_text(path) && !describes(path); });
  if (evidence.example.empty()) evidence.example = weigh(directory, is_text).example;
  return evidence;
}
Evidence of_parquet(const Listing& directory) {
  return weigh(directory, is_parquet_name);
}
Evidence of_tables(const Listing& directory) {
  return weigh(directory, has_csv_ending);
}

Evidence of_images(const Listing& directory) {
  const std::string& root = directory.path;
  Evidence evidence;
  std::error_code error;
  fs::recursive_directory_iterator it(root, fs::directory_options::follow_directory_symlink, error);
  size_t looked = 0;
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_hidden(name) || it.depth() > 8) {
      it.disable_recursion_pending();
      continue;
    }
    if (it.depth() == 0 || !has_image_ending(name)) continue;
    add_file(it->path().string(), it->path().lexically_relative(root).string(), evidence);
    if (++looked == kImagesWeighed) break;
  }
  return evidence;
}

}  // namespace weight

}  // namespace lockstep::data
