#include "data/formats/shards/mds.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/file.h"
#include "comm/base/little_endian.h"
#include "data/base/file_errors.h"
#include "data/files/split_directory.h"
#include "data/formats/format_rows.h"
#include "data/formats/shards/shard_source.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "index.json";
constexpr size_t kIndexBytes = 256 * kMib;  // some hundred by shard

int64_t integer_at(const uint8_t* at, std::string_view encoding) {
  switch (mds_integer_bytes(encoding)) {
    case -1:
      return load_le<int8_t>(at);
    case -2:
      return load_le<int16_t>(at);
    case -4:
      return load_le<int32_t>(at);
    case 1:
      return load_le<uint8_t>(at);
    case 2:
      return load_le<uint16_t>(at);
    case 4:
      return load_le<uint32_t>(at);
    default:
      return load_le<int64_t>(at);  // of a uint64 beyond that: negative, which is no label
  }
}

// One sample, which is [begin, end) of the shard.
Result<Extent> sample_of(const MdsShard& said, std::span<const uint8_t> shard, uint64_t begin,
                         uint64_t end) {
  const auto sizes = static_cast<uint64_t>(std::count_if(
      said.columns.begin(), said.columns.end(), [](const MdsColumn& c) { return c.bytes == 0; }));
  if (end - begin < 4 * sizes)
    return bad("is damaged: it has no room for the sizes of its columns");
  const uint8_t* size = shard.data() + begin;
  uint64_t at = begin + 4 * sizes;
  uint64_t image_at = 0;
  uint64_t image_bytes = 0;
  int64_t number = 0;
  for (size_t i = 0; i < said.columns.size(); ++i) {
    const MdsColumn& column = said.columns[i];
    uint64_t bytes = column.bytes;
    if (bytes == 0) {
      bytes = load_le<uint32_t>(size);
      size += 4;
    }
    if (bytes > end - at) return bad("is damaged: column " + column.name + " reaches beyond it");
    if (i == said.image) image_at = at;
    if (i == said.image) image_bytes = bytes;
    if (i == said.label) number = integer_at(shard.data() + at, column.encoding);
    at += bytes;
  }
  if (at != end) return bad("is damaged: its columns do not fill it");
  const auto label = as_label(number);
  if (!label)
    return bad("has " + said.columns[said.label].name + " " + std::to_string(number) +
               ", but a label is " + label_bounds());
  auto extent = image_in_shard(shard, image_at, image_bytes);
  if (!extent.is_ok()) return bad("has an image that " + extent.status().message());
  extent->label = *label;
  return extent;
}

// An index of the whole is for either split.
std::string directory_of(const std::string& path, Split split) {
  std::error_code error;
  const bool is_whole = fs::exists(path + "/" + kIndexName, error);
  return !is_whole && has_split_directories(path) ? split_directory(path, split) : path;
}

WholeCodec codec_of(const MdsShard& shard) {
  if (shard.compression == "zstd") return WholeCodec::kZstd;
  return shard.compression == "gz" ? WholeCodec::kGzip : WholeCodec::kNone;
}

// As Streaming does: takes the inflated shard if it is there, else the compressed one.
Status find_files(const std::vector<MdsShard>& said, Shards& shards) {
  std::error_code error;
  for (const MdsShard& shard : said) {
    const size_t i = shards.names.size();
    shards.names.push_back(shard.name);
    const std::string path = shards.directory + "/" + shard.name;
    if (fs::exists(path, error)) continue;
    const std::string packed = shards.directory + "/" + shard.packed_name;
    if (shard.packed_name.empty() || !fs::exists(packed, error))
      return {Code::kNoInput, path + " does not exist, but " + kIndexName +
                                  " names it; copy the shard there, or copy all again"};
    if (codec_of(shard) == WholeCodec::kNone)
      return bad(packed + " is compressed by " + shard.compression +
                 ", but Lockstep inflates only zstd and gz; unpack the shards, or write them with "
                 "one of these or without compression");
    shards.packed.emplace(
        i, PackedShard{codec_of(shard), shard.packed_name, shard.bytes, shard.packed_bytes});
  }
  return Status::ok();
}

}  // namespace

bool is_mds_directory(const std::string& path) {
  const auto text = read_file(directory_of(path, Split::kTrain) + "/" + kIndexName, kIndexBytes);
  return text.is_ok() && is_mds_index(*text);
}

Result<MdsSet> find_mds(const std::string& path, Split split) {
  MdsSet set;
  std::error_code error;
  set.shards.directory = directory_of(path, split);
  const std::string index = set.shards.directory + "/" + kIndexName;
  if (!fs::exists(index, error)) return Status(Code::kNoInput, index + " is not there");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(index, kIndexBytes));
  auto said = parse_mds_index(text);
  if (!said.is_ok()) return about(index, said.status());
  LOCKSTEP_RETURN_IF_ERROR(find_files(*said, set.shards));
  set.said = std::move(*said);
  set.shards.sources = {kIndexName};
  return set;
}

Result<std::vector<Extent>> samples_of_mds(const MdsShard& said, std::span<const uint8_t> bytes) {
  if (bytes.size() != said.bytes)
    return bad("has " + std::to_string(bytes.size()) + " bytes, but the index says " +
               std::to_string(said.bytes) + "; copy it again");
  const bool has_table = bytes.size() >= 8 && said.samples <= (bytes.size() - 8) / 4;
  if (!has_table || load_le<uint32_t>(bytes.data()) != said.samples)
    return bad("is damaged: it does not hold the " + std::to_string(said.samples) +
               " samples that the index says");
  std::vector<Extent> samples;
  const uint64_t first = 4 + 4 * (said.samples + 1);
  uint64_t begin = load_le<uint32_t>(bytes.data() + 4);
  for (uint64_t i = 0; i < said.samples; ++i) {
    const uint64_t end = load_le<uint32_t>(bytes.data() + 4 * (i + 2));
    const std::string which = "has sample " + std::to_string(i) + ", which ";
    if (begin < first || end < begin || end > bytes.size())
      return bad(which + "lies outside the file: the file is damaged");
    auto sample = sample_of(said, bytes, begin, end);
    if (!sample.is_ok()) return bad(which + sample.status().message());
    samples.push_back(*sample);
    begin = end;
  }
  return samples;
}

namespace {

Result<std::string> mds_in(const Listing& directory) {
  return named_if(is_mds_directory(directory.path), "mds");
}

Result<EncodedSource> find_mds_source(const EncodedRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(MdsSet set, find_mds(request.path, request.split));
  for (MdsShard& shard : set.said)
    if (const Status status = choose_mds_columns(shard, request.columns); !status.is_ok())
      return about(set.shards.directory + "/" + kIndexName, status);
  const auto read = [said = std::move(set.said)](size_t i, std::span<const uint8_t> bytes,
                                                 SourceNotes& notes) {
    notes.columns = {said[i].columns[said[i].image].name, said[i].columns[said[i].label].name};
    return samples_of_mds(said[i], bytes);
  };
  return shard_source("mds", std::move(set.shards), read, request);
}

bool mds_has_eval(const std::string& path) {
  const auto train = find_mds(path, Split::kTrain);
  const auto eval = find_mds(path, Split::kEval);
  if (!eval.is_ok()) return false;
  return !train.is_ok() || train->shards.directory != eval->shards.directory;
}

}  // namespace

constinit const DataFormat kMdsFormat{.name = "mds",
                                      .in_directory = {{{DirectoryStep::kNames, mds_in}}},
                                      .find = find_mds_source,
                                      .has_eval = mds_has_eval,
                                      .serves_both = unless<mds_has_eval>};

}  // namespace lockstep::data
