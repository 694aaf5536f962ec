#include "data/formats/arrays/idx_pair.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "comm/base/limits.h"
#include "data/files/gzip.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/idx_header.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

std::string without_gz(const std::string& name) {
  return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

// "train-images-idx3-ubyte.gz" is standard for role "train-images".
bool is_standard(const std::string& name, const std::string& role) {
  if (name.rfind(role, 0) != 0) return false;
  const std::string rest = without_gz(name).substr(std::min(role.size(), without_gz(name).size()));
  const bool numbered = rest.size() == 11 && (rest[0] == '-' || rest[0] == '.') &&
                        rest.compare(1, 3, "idx") == 0 && rest[4] >= '1' && rest[4] <= '4' &&
                        rest.compare(5, 6, "-ubyte") == 0;
  return numbered || rest == ".idx" || rest == "-ubyte";
}

// The file of a role; empty when there is none.
Result<std::string> find_role(const std::string& directory, const std::vector<std::string>& names,
                              const std::string& role) {
  std::string found;
  for (const std::string& name : names) {
    if (!is_standard(name, role)) continue;
    // Sorted: the plain file comes before its gzipped twin.
    if (found.empty()) {
      found = name;
    } else if (without_gz(name) != found) {
      return Status(Code::kBadData, "data directory " + directory + " has both " + found + " and " +
                                        name + "; leave one of them there");
    }
  }
  return found;
}

enum class Content { kOther, kImages, kLabels };

Content look_into(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file.is_ok()) return Content::kOther;
  std::vector<uint8_t> head(limits::kIdxHeaderBytes);
  std::span<const uint8_t> bytes = file.value().bytes();
  if (is_gzip(bytes)) {
    // A stream that breaks after its head is still a candidate: opening it tells what is wrong.
    GzipReader reader(bytes);
    const auto filled = reader.read(head);
    if (!filled.is_ok()) return Content::kOther;
    bytes = std::span(head).first(filled.value());
  }
  const auto header = parse_idx_header(bytes.first(std::min(bytes.size(), head.size())));
  if (!header.is_ok()) return Content::kOther;
  if (is_image_header(header.value())) return Content::kImages;
  return is_label_header(header.value()) ? Content::kLabels : Content::kOther;
}

Result<IdxPair> find_by_content(const std::string& directory,
                                const std::vector<std::string>& names) {
  std::vector<std::string> images;
  std::vector<std::string> labels;
  for (const std::string& name : names) {
    // A gzipped twin of a plain file is the same data.
    if (name.ends_with(".gz") && std::binary_search(names.begin(), names.end(), without_gz(name)))
      continue;
    const std::string path = (fs::path(directory) / name).string();
    const Content content = look_into(path);
    if (content == Content::kImages) images.push_back(path);
    if (content == Content::kLabels) labels.push_back(path);
  }
  if (images.empty() || labels.empty())
    return Status(Code::kNoInput, "data directory " + directory + " holds no IDX " +
                                      (images.empty() ? "images" : "labels") +
                                      "; Lockstep looks for files such as "
                                      "train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz");
  if (images.size() > 1 || labels.size() > 1)
    return Status(Code::kBadData, "data directory " + directory + " holds " +
                                      std::to_string(images.size()) + " files of images and " +
                                      std::to_string(labels.size()) +
                                      " of labels without standard names; leave one pair there");
  return IdxPair{images[0], labels[0], true};
}

}  // namespace

Result<IdxPair> find_idx_pair(const std::string& directory, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(directory));
  const auto any_standard = [&](const std::string& prefix) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return is_standard(name, prefix + "-images") || is_standard(name, prefix + "-labels");
    });
  };
  if (!any_standard("train") && !any_standard("t10k")) return find_by_content(directory, names);

  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string images,
                            find_role(directory, names, prefix + "-images"));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string labels,
                            find_role(directory, names, prefix + "-labels"));
  if (images.empty() || labels.empty()) {
    const std::string missing =
        images.empty() ? prefix + "-images-idx3-ubyte" : prefix + "-labels-idx1-ubyte";
    return Status(Code::kNoInput,
                  "data directory " + directory + " lacks " + missing + " (or " + missing + ".gz)");
  }
  return IdxPair{(fs::path(directory) / images).string(), (fs::path(directory) / labels).string(),
                 false};
}

bool has_idx_file(const std::string& directory) {
  const auto names = list_data_files(directory);
  return names.is_ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
           return look_into((fs::path(directory) / name).string()) != Content::kOther;
         });
}

}  // namespace lockstep::data
