#include "data/formats/shards/mds_index.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kColumns = 256;
constexpr std::string_view kMdsLabels[] = {"label", "cls", "class", "target"};

const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? kNothing : *found;
}

std::string json_text_of(const Json& object, const char* key) {
  const Json& found = member(object, key);
  return found.is_string() ? found.get<std::string>() : "";
}

uint64_t number_of(const Json& object, const char* key) {
  const Json& found = member(object, key);
  return found.is_number_unsigned() ? found.get<uint64_t>() : 0;
}

std::string columns_text(const MdsShard& shard) {
  std::string text;
  for (const MdsColumn& column : shard.columns)
    text += (text.empty() ? "" : ", ") + column.name + " (" + column.encoding + ")";
  return text;
}

Status read_mds_columns(const Json& said, MdsShard& shard) {
  const Json& names = member(said, "column_names");
  const Json& encodings = member(said, "column_encodings");
  const Json& sizes = member(said, "column_sizes");
  const bool is_table = names.is_array() && encodings.is_array() && sizes.is_array() &&
                        names.size() == encodings.size() && names.size() == sizes.size() &&
                        names.size() <= kColumns;
  if (!is_table) return bad("does not list the columns of shard " + shard.name);
  for (size_t i = 0; i < names.size(); ++i) {
    const bool has_size = sizes[i].is_number_unsigned() && sizes[i] > 0;
    if (!names[i].is_string() || !encodings[i].is_string() || (!has_size && !sizes[i].is_null()))
      return bad("does not list the columns of shard " + shard.name);
    MdsColumn column{names[i], encodings[i], has_size ? sizes[i].get<uint64_t>() : 0};
    const auto integer = static_cast<uint64_t>(std::abs(mds_integer_bytes(column.encoding)));
    if (integer > 0 && column.bytes != integer)
      return bad("says that column " + column.name + " of " + column.encoding + " has " +
                 std::to_string(column.bytes) + " bytes");
    shard.columns.push_back(std::move(column));
  }
  return Status::ok();
}

// The only column that `fits`.
template <typename Fits>
std::optional<size_t> only(const MdsShard& shard, const Fits& fits) {
  std::optional<size_t> found;
  for (size_t i = 0; i < shard.columns.size(); ++i) {
    if (!fits(shard.columns[i])) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

Status choose_columns(MdsShard& shard) {
  const auto is_image = [](const MdsColumn& c) {
    return c.encoding == "jpeg" || c.encoding == "png";
  };
  const auto is_bytes = [](const MdsColumn& c) { return c.encoding == "bytes"; };
  const auto is_number = [](const MdsColumn& c) { return mds_integer_bytes(c.encoding) != 0; };
  const auto is_label = [&](const MdsColumn& c) {
    return is_number(c) &&
           std::find(std::begin(kMdsLabels), std::end(kMdsLabels), c.name) != std::end(kMdsLabels);
  };
  auto image = only(shard, is_image);
  if (!image) image = only(shard, is_bytes);
  if (!image)
    return bad("names shard " + shard.name + " with the columns " + columns_text(shard) +
               "; one must be an image, of encoding jpeg or png, or else bytes");
  auto label = only(shard, is_label);
  if (!label) label = only(shard, is_number);
  if (!label)
    return bad("names shard " + shard.name + " with the columns " + columns_text(shard) +
               "; one must be the label, called label and of encoding int");
  shard.image = *image;
  shard.label = *label;
  return Status::ok();
}

bool is_within(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() && name.find('\0') == std::string::npos &&
         std::find(path.begin(), path.end(), "..") == path.end();
}

// "zstd:7": the level is the writer's affair.
Status read_packed(const Json& said, MdsShard& shard) {
  const Json& zip = member(said, "zip_data");
  if (!zip.is_object()) return Status::ok();
  shard.packed_name = json_text_of(zip, "basename");
  shard.packed_bytes = number_of(zip, "bytes");
  const std::string compression = json_text_of(said, "compression");
  shard.compression = compression.substr(0, compression.find(':'));
  if (shard.packed_name.empty())
    return bad("names shard " + shard.name +
               " as compressed, without the name of the compressed file (zip_data.basename)");
  if (!is_within(shard.packed_name))
    return bad("names the shard " + shard.packed_name + ", which lies outside its directory");
  return Status::ok();
}

Result<MdsShard> parse_shard(const Json& said) {
  MdsShard shard;
  const Json& raw = member(said, "raw_data");
  shard.name = json_text_of(raw, "basename");
  if (shard.name.empty())
    return bad("has a shard without the name of its file (raw_data.basename)");
  if (!is_within(shard.name))
    return bad("names the shard " + shard.name + ", which lies outside its directory");
  if (json_text_of(said, "format") != "mds")
    return bad("names shard " + shard.name + " of format " + json_text_of(said, "format") +
               "; Lockstep reads only mds");
  shard.bytes = number_of(raw, "bytes");
  shard.samples = number_of(said, "samples");
  LOCKSTEP_RETURN_IF_ERROR(read_packed(said, shard));
  LOCKSTEP_RETURN_IF_ERROR(read_mds_columns(said, shard));
  LOCKSTEP_RETURN_IF_ERROR(choose_columns(shard));
  return shard;
}

}  // namespace

int mds_integer_bytes(std::string_view encoding) {
  constexpr std::pair<std::string_view, int> kKnown[] = {
      {"int", -8},  {"int8", -1},  {"int16", -2}, {"int32", -4}, {"int64", -8},
      {"uint8", 1}, {"uint16", 2}, {"uint32", 4}, {"uint64", 8},
  };
  for (const auto& [name, bytes] : kKnown)
    if (encoding == name) return bytes;
  return 0;
}

bool is_mds_index(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json& shards = member(json, "shards");
  return shards.is_array() && !shards.empty() && json_text_of(shards[0], "format") == "mds";
}

Result<std::vector<MdsShard>> parse_mds_index(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json& shards = member(json, "shards");
  if (!shards.is_array() || shards.empty()) return bad("is not an index of MDS shards");
  std::vector<MdsShard> found;
  std::set<std::string> names;
  for (const Json& said : shards) {
    LOCKSTEP_ASSIGN_OR_RETURN(MdsShard shard, parse_shard(said));
    if (!names.insert(shard.name).second) return bad("names the shard " + shard.name + " twice");
    if (shard.samples > 0) found.push_back(std::move(shard));
  }
  if (found.empty()) return bad("says that its shards hold no sample");
  return found;
}

}  // namespace lockstep::data
