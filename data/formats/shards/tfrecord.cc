#include "data/formats/shards/tfrecord.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "comm/base/byte_units.h"
#include "comm/base/crc32c.h"
#include "comm/base/descriptors.h"
#include "comm/base/little_endian.h"
#include "comm/base/text/lower_case.h"
#include "data/base/file_errors.h"
#include "data/dataset/weigh_files.h"
#include "data/files/gzip.h"
#include "data/files/list_files.h"
#include "data/formats/format_rows.h"
#include "data/formats/images/encoded_format.h"
#include "data/formats/shards/packed_shards.h"
#include "data/formats/shards/shard_source.h"
#include "data/formats/shards/shards.h"
#include "data/formats/shards/tf_example.h"
#include "data/image/image_info.h"

namespace lockstep::data {
namespace {

constexpr size_t kHeadBytes = 12;  // length and its CRC
constexpr size_t kTailBytes = 4;
constexpr size_t kPackedHeadBytes = 4 * kKib;  // of gzip, which begins with a name

constexpr std::string_view kImageNames[] = {"image/encoded", "image"};

bool has_good_head(std::span<const uint8_t> file) {
  const std::string_view length(reinterpret_cast<const char*>(file.data()), sizeof(uint64_t));
  return load_le<uint32_t>(file.data() + sizeof(uint64_t)) == masked_crc32c(length);
}

// "-00000-of-00128"
bool ends_as_a_shard(std::string_view name) {
  const size_t of = name.rfind("-of-");
  const auto is_number = [](std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (of == std::string_view::npos || !is_number(name.substr(of + 4))) return false;
  const size_t dash = name.substr(0, of).rfind('-');
  return dash != std::string_view::npos && is_number(name.substr(dash + 1, of - dash - 1));
}

// Chooses the image or the label from one feature after another.
struct FeatureChoice {
  size_t rank = SIZE_MAX;
  TfFeature best;
  bool is_open = false;  // several are equally good

  void offer(const TfFeature& feature, size_t its) {
    if (its > rank) return;
    is_open = its == rank;
    rank = its;
    best = feature;
  }
  bool is_made() const { return rank != SIZE_MAX && !is_open; }
};

// Names not on the list rank equal. If the job names a feature, no other counts.
std::optional<size_t> image_rank(std::string_view name, const ColumnNames& wanted) {
  if (!wanted.input.empty()) return name == wanted.input ? std::optional<size_t>(0) : std::nullopt;
  const auto* const found = std::find(std::begin(kImageNames), std::end(kImageNames), name);
  return static_cast<size_t>(found - std::begin(kImageNames));
}

// "height (a whole number), class_name (bytes)".
std::string features_text(std::span<const uint8_t> record) {
  constexpr size_t kShown = 12;
  std::string text;
  size_t features = 0;
  const Status status = walk_example(record, [&](const TfFeature& feature) {
    if (++features > kShown) return Status::ok();
    const std::string kind = feature.texts == 1     ? "bytes"
                             : feature.texts > 1    ? std::to_string(feature.texts) + " of bytes"
                             : feature.numbers == 1 ? "a whole number"
                             : feature.numbers > 1
                                 ? std::to_string(feature.numbers) + " whole numbers"
                                 : "of another type";
    text += (text.empty() ? "" : ", ") + std::string(feature.name) + " (" + kind + ")";
    return Status::ok();
  });
  if (!status.is_ok() || text.empty()) return "no feature";
  return features > kShown ? text + " and " + std::to_string(features - kShown) + " more" : text;
}

Result<Extent> example_of(std::span<const uint8_t> shard, std::span<const uint8_t> record,
                          const ColumnNames& columns, TakenColumns& taken) {
  FeatureChoice image;
  FeatureChoice label;
  LOCKSTEP_RETURN_IF_ERROR(walk_example(record, [&](const TfFeature& feature) {
    const auto as_image = image_rank(feature.name, columns);
    if (as_image && feature.texts == 1 && begins_as_image(feature.text))
      image.offer(feature, *as_image);
    const auto as_number = label_rank(feature.name, columns);
    if (as_number && feature.numbers == 1) label.offer(feature, *as_number);
    return Status::ok();
  }));
  if (!image.is_made() && !columns.input.empty())
    return bad(no_input_text(columns, "one JPEG or PNG image", features_text(record)));
  if (!image.is_made())
    return bad(image.is_open
                   ? "has several images, and none of them is called image or image/encoded; set "
                     "data.input to one of " +
                         features_text(record)
                   : std::string("has no feature that is one JPEG or PNG image"));
  if (!label.is_made()) return bad(no_label_text(columns, features_text(record)));
  taken = {std::string(image.best.name), std::string(label.best.name)};
  const auto value = as_label(label.best.number);
  if (!value)
    return bad("has " + std::string(label.best.name) + " " + std::to_string(label.best.number) +
               ", but a label is " + label_bounds());
  const auto offset = static_cast<uint64_t>(image.best.text.data() - shard.data());
  auto extent = image_in_shard(shard, offset, image.best.text.size());
  if (!extent.is_ok())
    return bad("has an image in " + std::string(image.best.name) + " that " +
               extent.status().message());
  extent->label = *value;
  return extent;
}

// `begin`: the begin of a compressed file.
bool has_good_head_inside(std::span<const uint8_t> begin) {
  GzipReader reader(begin);
  std::array<uint8_t, kHeadBytes> head{};
  const auto got = reader.read(head);
  return got.is_ok() && *got == head.size() && has_good_head(head);
}

}  // namespace

bool is_tfrecord_file(const std::string& path) {
  const std::string name = name_inflated(path.substr(path.rfind('/') + 1));
  const bool is_named = has_word(name, {"tfrecord", "tfrecords", "tfrec"});
  const bool may_be =
      ends_as_a_shard(name) || ends_like(name, ".record") || ends_like(name, ".records");
  if (!is_named && !may_be) return false;
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<uint8_t, kPackedHeadBytes> begin{};
  const ssize_t got = fd.get() < 0 ? -1 : read_at(fd.get(), 0, begin.size(), begin.data());
  if (got <= 0) return is_named && got == 0;
  const auto head = std::span(begin).first(static_cast<size_t>(got));
  if (is_gzip(head)) return is_named || has_good_head_inside(head);
  return head.size() >= kHeadBytes && has_good_head(head);
}

Status walk_tfrecord(
    std::span<const uint8_t> file,
    const std::function<Status(uint64_t offset, std::span<const uint8_t> data)>& each) {
  if (is_gzip(file)) return gzipped_whole();
  for (uint64_t at = 0; at < file.size();) {
    const auto rest = file.subspan(at);
    if (rest.size() < kHeadBytes + kTailBytes) return bad("is truncated: it ends inside a record");
    if (!has_good_head(rest))
      return bad("has no record at byte " + std::to_string(at) +
                 ": it is damaged, or not a TFRecord file");
    const uint64_t length = load_le<uint64_t>(rest.data());
    if (length > rest.size() - kHeadBytes - kTailBytes)
      return bad("is truncated: it ends inside a record");
    LOCKSTEP_RETURN_IF_ERROR(each(at, rest.subspan(kHeadBytes, length)));
    at += kHeadBytes + length + kTailBytes;
  }
  return Status::ok();
}

bool has_good_checksum(std::span<const uint8_t> data) {
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  return load_le<uint32_t>(data.data() + data.size()) == masked_crc32c(text);
}

Result<std::vector<Extent>> samples_of_tfrecord(std::span<const uint8_t> shard,
                                                const ColumnNames& columns, TakenColumns* taken) {
  std::vector<Extent> samples;
  TakenColumns first;
  LOCKSTEP_RETURN_IF_ERROR(
      walk_tfrecord(shard, [&](uint64_t offset, std::span<const uint8_t> record) {
        TakenColumns its;
        auto sample = example_of(shard, record, columns, its);
        if (samples.empty()) first = its;
        if (sample.is_ok() && its.label != first.label)
          sample = bad("has its label in " + its.label + ", the records before it in " +
                       first.label + "; set data.label to one of them");
        if (sample.is_ok()) samples.push_back(*sample);
        return sample.is_ok() ? Status::ok()
                              : bad("has a record at byte " + std::to_string(offset) + " that " +
                                    sample.status().message());
      }));
  if (taken != nullptr) *taken = first;
  return samples;
}

namespace {

template <Split split>
Result<std::string> tfrecord_in(const Listing& directory) {
  return named_if(find_shards(directory.path, split, "", is_tfrecord_file).is_ok(), "tfrecord");
}
Result<std::string> tfrecord_at(const FileLook& file) {
  return named_if(is_tfrecord_file(file.path), "tfrecord");
}

Result<EncodedSource> find_tfrecord_source(const EncodedRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(Shards shards, find_shards(request.path, request.split, "TFRecords",
                                                       is_tfrecord_file, ShardNames::kAny));
  LOCKSTEP_RETURN_IF_ERROR(find_packed(shards));
  const auto read = [columns = request.columns](size_t, std::span<const uint8_t> bytes,
                                                SourceNotes& notes) {
    return samples_of_tfrecord(bytes, columns, &notes.columns);
  };
  return shard_source("tfrecord", std::move(shards), read, request);
}

constexpr RecordSums kTfrecordSums{walk_tfrecord, has_good_checksum};

}  // namespace

constinit const DataFormat kTfrecordFormat{
    .name = "tfrecord",
    .in_directory = {{{DirectoryStep::kShardsToTrainOn, tfrecord_in<Split::kTrain>,
                       weight_of<is_tfrecord_file>, /*has_tables_beside=*/true},
                      {DirectoryStep::kShardsToEvaluateOn, tfrecord_in<Split::kEval>,
                       weight_of<is_tfrecord_file>, /*has_tables_beside=*/true}}},
    .of_file = {{{FileStep::kMixed, tfrecord_at}}},
    .find = find_tfrecord_source,
    .has_eval = encoded_has_eval<find_tfrecord_source>,
    .serves_both = unless<encoded_has_eval<find_tfrecord_source>>,
    .record_sums = &kTfrecordSums};

}  // namespace lockstep::data
