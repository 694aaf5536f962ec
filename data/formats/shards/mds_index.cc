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

std::string mds_columns_text(const MdsShard& shard) {
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

Status choose_mds_columns(MdsShard& shard, const ColumnNames& wanted) {
  const auto is_wanted = [&](const MdsColumn& c) {
    return wanted.input.empty() || c.name == wanted.input;
  };
  const auto is_image = [&](const MdsColumn& c) {
    return is_wanted(c) && (c.encoding == "jpeg" || c.encoding == "png");
  };
  const auto is_bytes = [&](const MdsColumn& c) { return is_wanted(c) && c.encoding == "bytes"; };
  const std::string which = "names shard " + shard.name + ", which ";
  auto image = only(shard, is_image);
  if (!image) image = only(shard, is_bytes);
  if (!image && !wanted.input.empty())
    return bad(which + no_input_text(wanted, "jpeg, png or bytes", mds_columns_text(shard)));
  if (!image)
    return bad(which + "must have one image, of encoding jpeg or png, or else bytes; it has " +
               mds_columns_text(shard) + "; set data.input if several are images");
  size_t least = kLabelNames.size();
  std::optional<size_t> label;
  for (size_t i = 0; i < shard.columns.size(); ++i) {
    const auto rank = label_rank(shard.columns[i].name, wanted);
    if (mds_integer_bytes(shard.columns[i].encoding) == 0 || !rank || *rank >= least) continue;
    least = *rank;
    label = i;
  }
  if (!label) return bad(which + no_label_text(wanted, mds_columns_text(shard)));
  shard.image = *image;
  shard.label = *label;
  return Status::ok();
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
