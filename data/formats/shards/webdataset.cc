#include "data/formats/shards/webdataset.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "comm/base/byte_units.h"
#include "comm/base/text/lower_case.h"
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

// Also "5_1.jpg", of a key with dots, which WebDataset cuts at the first one.
bool has_any_image_ending(const std::string& ending) {
  return has_image_ending("." + ending) || has_foreign_image_ending("." + ending);
}

struct FoundLabel {
  uint32_t label = 0;
  size_t rank = 0;
  std::string place;  // "cls", or "json: label"
};

// The number in the best key; empty: there is none.
std::optional<std::pair<std::string, int64_t>> number_in_json(std::string_view text,
                                                              const ColumnNames& wanted) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  std::optional<std::pair<std::string, int64_t>> best;
  size_t least = kLabelNames.size();
  for (const auto& [key, value] : json.items()) {
    const auto rank = label_rank(key, wanted);
    if (!value.is_number_integer() || !rank || *rank >= least) continue;
    least = *rank;
    best = {key, value.get<int64_t>()};
  }
  return best;
}

// WebDataset's own name for labels comes before the others.
std::optional<size_t> file_rank(const std::string& ending, const ColumnNames& wanted) {
  if (wanted.label.empty() && ending == "cls") return 0;
  const auto rank = label_rank(ending, wanted);
  return rank ? std::optional(*rank + 1) : std::nullopt;
}
constexpr size_t kJsonRank = 1 + kLabelNames.size();

// Collects the files of one sample after another.
class Shard {
 public:
  Shard(std::span<const uint8_t> archive, const ColumnNames& columns, SourceNotes& notes,
        const TarMasks& masks)
      : archive_(archive), columns_(columns), notes_(notes), masks_(masks) {}

  Status add(const TarEntry& entry) {
    if (lies_hidden(entry.name)) return Status::ok();
    const size_t slash = entry.name.rfind('/');
    const size_t base = slash == std::string::npos ? 0 : slash + 1;
    const size_t dot = entry.name.find('.', base);
    if (dot == std::string::npos || dot == base) {  // not of a sample
      notes_.left_out.add(kind_of_file(entry.name.substr(base)), entry.name, false);
      return Status::ok();
    }
    const std::string key = entry.name.substr(0, dot);
    if (key != key_) {
      LOCKSTEP_RETURN_IF_ERROR(finish());
      key_ = key;
    }
    const std::string ending = lower_case(std::string_view(entry.name).substr(dot + 1));
    members_ = true;
    if (example_.empty() || has_any_image_ending(ending)) example_ = entry.name;
    has_hint_ = has_hint_ || has_any_image_ending(ending);
    if (masks_.is_mask(ending)) return ending == masks_.taken ? add_mask(entry) : Status::ok();
    if (is_image_member(ending)) return add_image(entry, ending);
    if (!needs_label()) return Status::ok();
    if (ending == "json") return add_json(entry);
    const auto rank = file_rank(ending, columns_);
    return rank ? add_label(entry, ending, *rank) : Status::ok();
  }

  // Drops a sample without an image. A sample without a label cannot be learned.
  Status finish() {
    if (!masks_.taken.empty()) LOCKSTEP_RETURN_IF_ERROR(finish_mask());
    if (image_ && !label_ && needs_label()) return no_label();
    if (image_ && masks_.taken.empty()) {
      image_->label = label_ ? label_->label : 0;
      if (samples_.empty()) notes_.columns = {input_, label_ ? label_->place : ""};
      samples_.push_back(*image_);
    }
    // Files with a label or the name of an image were meant to be a sample.
    if (!image_ && members_)
      notes_.left_out.add("sample without an image", example_, label_.has_value() || has_hint_);
    image_.reset();
    mask_.reset();
    label_.reset();
    members_ = has_hint_ = false;
    example_.clear();
    return Status::ok();
  }

  std::vector<Extent> take() { return std::move(samples_); }

 private:
  std::string_view text_of(const TarEntry& entry) const {
    const auto bytes = archive_.subspan(entry.offset, std::min(entry.bytes, kLabelBytes));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool is_image_member(const std::string& ending) const {
    if (!columns_.input.empty()) return ending == columns_.input;
    return ending.find('.') == std::string::npos && has_image_ending("." + ending);
  }

  bool needs_label() const { return masks_.has_label && masks_.taken.empty(); }

  // Each image has its mask, and each mask its image.
  Status finish_mask() {
    if (image_ && !mask_)
      return bad("has sample " + key_ + ", an image without a mask; there must be a file " + key_ +
                 "." + masks_.taken + ", as the job's keys data.inputs and data.targets say");
    if (mask_ && !image_)
      return bad("has " + key_ + "." + masks_.taken +
                 ", a mask without an image; put the image beside it, or take the mask out");
    if (mask_) samples_.push_back(*mask_);
    return Status::ok();
  }

  Status add_mask(const TarEntry& entry) {
    if (mask_)
      return bad("has two masks of sample " + key_ + ", the second in " + entry.name +
                 "; a sample's files follow each other, so give samples names of their own");
    const auto mask = image_in_shard(archive_, entry.offset, entry.bytes, PictureKind::kMask);
    if (!mask.is_ok()) return bad("has " + entry.name + ", which " + mask.status().message());
    mask_ = *mask;
    return Status::ok();
  }

  Status no_label() const {
    if (!columns_.label.empty())
      return bad("has sample " + key_ + " without a label; there must be a file " + key_ + "." +
                 columns_.label + " with its number, or " + key_ + ".json with {\"" +
                 columns_.label + "\": number}, as data.label says");
    return bad("has sample " + key_ + " without a label; there must be a file " + key_ +
               ".cls with its number, or " + key_ +
               ".json with {\"label\": number}; data.label names another");
  }

  Status add_image(const TarEntry& entry, const std::string& ending) {
    if (image_)
      return bad("has two images of sample " + key_ + ", the second in " + entry.name +
                 "; set data.input to the ending of one");
    input_ = ending;
    const auto image = image_in_shard(archive_, entry.offset, entry.bytes);
    if (!image.is_ok()) return bad("has " + entry.name + ", which " + image.status().message());
    image_ = *image;
    return Status::ok();
  }

  Status add_label(const TarEntry& entry, const std::string& ending, size_t rank) {
    const auto number = label_in_text(text_of(entry));
    const bool is_told = ending == "cls" || ending == columns_.label;
    if (!number && !is_told) return Status::ok();  // a word, whose number is elsewhere
    return offer(entry, number ? as_label(*number) : std::nullopt, rank, ending);
  }

  Status add_json(const TarEntry& entry) {
    const auto found = number_in_json(text_of(entry), columns_);
    if (!found) return Status::ok();  // the JSON may be about other things
    return offer(entry, as_label(found->second), kJsonRank, "json: " + found->first);
  }

  Status offer(const TarEntry& entry, std::optional<uint32_t> label, size_t rank,
               const std::string& place) {
    if (!label)
      return bad("has " + entry.name + ", which holds no label; a label is " + label_bounds());
    if (!label_ || rank < label_->rank) label_ = {*label, rank, place};
    return Status::ok();
  }

  std::span<const uint8_t> archive_;
  const ColumnNames& columns_;
  SourceNotes& notes_;
  const TarMasks& masks_;
  std::string key_;
  std::string input_;  // the ending of the image
  std::optional<Extent> image_;
  std::optional<Extent> mask_;
  std::optional<FoundLabel> label_;
  bool members_ = false;
  bool has_hint_ = false;  // a member whose name ends like an image
  std::string example_;    // a member
  std::vector<Extent> samples_;
};

}  // namespace

bool is_tar_file(const std::string& path) {
  return ends_like(path, ".tar");
}

bool is_packed_tar(const std::string& path) {
  return ends_like(path, ".tar.gz") || ends_like(path, ".tgz");
}

Result<std::vector<Extent>> samples_of_tar(std::span<const uint8_t> archive,
                                           const ColumnNames& columns, SourceNotes* notes,
                                           const TarMasks& masks) {
  SourceNotes unseen;
  Shard shard(archive, columns, notes == nullptr ? unseen : *notes, masks);
  LOCKSTEP_RETURN_IF_ERROR(
      walk_tar(archive, [&](const TarEntry& entry) { return shard.add(entry); }));
  LOCKSTEP_RETURN_IF_ERROR(shard.finish());
  return shard.take();
}

}  // namespace lockstep::data
