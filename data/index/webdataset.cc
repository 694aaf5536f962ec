#include "data/index/webdataset.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "comm/base/limits.h"
#include "data/image/image_info.h"
#include "data/index/file_errors.h"
#include "data/index/list_files.h"
#include "data/index/look_at_image.h"
#include "data/index/mapped_file.h"
#include "data/index/tar_entries.h"
#include "data/index/thread_team.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLabelBytes = 1'048'576;  // of the file with the label

std::optional<int64_t> label_in_text(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  int64_t label = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return label;
}

std::optional<int64_t> label_in_json(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  for (const char* key : {"label", "cls"}) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_number_integer()) return found->get<int64_t>();
  }
  return std::nullopt;
}

// Collects the files of one sample after another.
class Shard {
 public:
  explicit Shard(std::span<const uint8_t> archive) : archive_(archive) {}

  Status add(const TarEntry& entry) {
    const size_t slash = entry.name.rfind('/');
    const size_t base = slash == std::string::npos ? 0 : slash + 1;
    const size_t dot = entry.name.find('.', base);
    if (dot == std::string::npos || dot == base) return Status::ok();  // not of a sample
    const std::string key = entry.name.substr(0, dot);
    if (key != key_) {
      LOCKSTEP_RETURN_IF_ERROR(finish());
      key_ = key;
    }
    const std::string ending = entry.name.substr(dot);
    if (ending == ".cls" || ending == ".json") return add_label(entry, ending == ".json");
    const bool is_image = ending.rfind('.') == 0 && has_image_ending(ending);
    return is_image ? add_image(entry) : Status::ok();
  }

  // A sample without an image is none, and one without a label cannot be learned.
  Status finish() {
    if (image_ && !label_)
      return bad("has sample " + key_ + " without a label; there must be a file " + key_ +
                 ".cls with its number, or " + key_ + ".json with {\"label\": number}");
    if (image_) {
      image_->label = static_cast<uint32_t>(*label_);
      samples_.push_back(*image_);
    }
    image_.reset();
    label_.reset();
    return Status::ok();
  }

  std::vector<Extent> take() { return std::move(samples_); }

 private:
  std::span<const uint8_t> bytes_of(const TarEntry& entry) const {
    return archive_.subspan(entry.offset, entry.bytes);
  }

  Status add_image(const TarEntry& entry) {
    if (image_) return bad("has two images of sample " + key_ + ", the second in " + entry.name);
    if (entry.bytes > limits::kEncodedBytes)
      return bad("has " + entry.name + " of " + std::to_string(entry.bytes) +
                 " bytes, and an image may have " + std::to_string(limits::kEncodedBytes));
    Extent extent;
    extent.offset = entry.offset;
    extent.bytes = static_cast<uint32_t>(entry.bytes);
    if (const Status status = describe_image(bytes_of(entry), extent); !status.is_ok())
      return bad("has " + entry.name + ", which " + status.message());
    image_ = extent;
    return Status::ok();
  }

  Status add_label(const TarEntry& entry, bool is_json) {
    const auto bytes = bytes_of(entry).first(std::min(entry.bytes, kLabelBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto label = is_json ? label_in_json(text) : label_in_text(text);
    if (!label && is_json) return Status::ok();  // it may be of other things
    if (!label || *label < 0 || *label > int64_t{limits::kLabel})
      return bad("has " + entry.name + ", which holds no label: a number, 0 to " +
                 std::to_string(limits::kLabel));
    if (!label_ || !is_json) label_ = label;
    return Status::ok();
  }

  std::span<const uint8_t> archive_;
  std::string key_;
  std::optional<Extent> image_;
  std::optional<int64_t> label_;
  std::vector<Extent> samples_;
};

struct LookedAt {
  std::vector<Extent> samples;
  IndexContent::Path file;
};

Status look_at_shard(const std::string& directory, const std::string& name, LookedAt& out) {
  const std::string path = directory + "/" + name;
  LOCKSTEP_ASSIGN_OR_RETURN(out.file, stamp_of(directory, name));
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  auto samples = samples_of_shard(file.bytes());
  LOCKSTEP_RETURN_IF_ERROR(file.unchanged());  // which would explain it
  if (!samples.is_ok()) return about(path, samples.status());
  out.samples = std::move(*samples);
  return Status::ok();
}

}  // namespace

Result<std::vector<Extent>> samples_of_shard(std::span<const uint8_t> archive) {
  Shard shard(archive);
  LOCKSTEP_RETURN_IF_ERROR(
      walk_tar(archive, [&](const TarEntry& entry) { return shard.add(entry); }));
  LOCKSTEP_RETURN_IF_ERROR(shard.finish());
  return shard.take();
}

Result<WebdatasetShards> find_webdataset(const std::string& path, Split split) {
  std::error_code error;
  WebdatasetShards shards;
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error)) return Status(Code::kNoInput, "data " + path + " is not there");
    shards.directory = fs::path(path).parent_path().string();
    if (shards.directory.empty()) shards.directory = ".";
    shards.names = {fs::path(path).filename().string()};
    return shards;
  }
  shards.directory = path;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
  for (const std::string& name : names)
    if (name.ends_with(".tar") && is_for_evaluation(name) == (split == Split::kEval))
      shards.names.push_back(name);
  if (shards.names.empty())
    return Status(Code::kNoInput, path + " has no *.tar " +
                                      (split == Split::kEval ? "with val, test or eval in its name"
                                                             : "but such for evaluation"));
  return shards;
}

Result<IndexContent> look_at_webdataset(const WebdatasetShards& shards, uint32_t threads,
                                        const ProgressFn& progress) {
  std::vector<LookedAt> looked(shards.names.size());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "index"));
  ProgressOfMany shown("looking at the shards of " + shards.directory, looked.size(), progress);
  LOCKSTEP_RETURN_IF_ERROR(team->run(looked.size(), [&](uint32_t thread, uint64_t i) {
    Status status = look_at_shard(shards.directory, shards.names[i], looked[i]);
    shown.one_done(thread);
    return status;
  }));
  IndexContent content;
  uint32_t largest = 0;
  for (LookedAt& shard : looked) {
    for (Extent& extent : shard.samples) {
      extent.file = static_cast<uint32_t>(content.files.size());
      largest = std::max(largest, extent.label);
      content.extents.push_back(extent);
    }
    content.sources.push_back(shard.file);
    content.files.push_back(std::move(shard.file));
  }
  if (content.extents.empty())
    return Status(Code::kBadData, shards.directory + "/" + shards.names[0] +
                                      (shards.names.size() > 1 ? " and the shards with it" : "") +
                                      " hold no sample with an image (*.jpg, *.jpeg, *.png)");
  for (uint32_t label = 0; label <= largest; ++label)
    content.classes.push_back(std::to_string(label));
  return content;
}

}  // namespace lockstep::data
