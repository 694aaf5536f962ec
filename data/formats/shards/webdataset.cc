#include "data/formats/shards/webdataset.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "comm/base/byte_units.h"
#include "data/base/file_errors.h"
#include "data/base/hidden_names.h"
#include "data/dataset/statistics.h"
#include "data/formats/shards/shards.h"
#include "data/formats/shards/tar_entries.h"
#include "data/image/image_info.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kLabelBytes = kMib;  // of the file with the label

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
    if (lies_hidden(entry.name)) return Status::ok();
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
      image_->label = *label_;
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
    const auto image = image_in_shard(archive_, entry.offset, entry.bytes);
    if (!image.is_ok()) return bad("has " + entry.name + ", which " + image.status().message());
    image_ = *image;
    return Status::ok();
  }

  Status add_label(const TarEntry& entry, bool is_json) {
    const auto bytes = bytes_of(entry).first(std::min(entry.bytes, kLabelBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto number = is_json ? label_in_json(text) : label_in_text(text);
    if (!number && is_json) return Status::ok();  // it may be of other things
    const auto label = number ? as_label(*number) : std::nullopt;
    if (!label)
      return bad("has " + entry.name + ", which holds no label; a label is " + label_bounds());
    if (!label_ || !is_json) label_ = label;
    return Status::ok();
  }

  std::span<const uint8_t> archive_;
  std::string key_;
  std::optional<Extent> image_;
  std::optional<uint32_t> label_;
  std::vector<Extent> samples_;
};

}  // namespace

bool is_tar_file(const std::string& path) {
  return path.ends_with(".tar");
}

bool is_packed_tar(const std::string& path) {
  return path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

Result<std::vector<Extent>> samples_of_tar(std::span<const uint8_t> archive) {
  Shard shard(archive);
  LOCKSTEP_RETURN_IF_ERROR(
      walk_tar(archive, [&](const TarEntry& entry) { return shard.add(entry); }));
  LOCKSTEP_RETURN_IF_ERROR(shard.finish());
  return shard.take();
}

}  // namespace lockstep::data
