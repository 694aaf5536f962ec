#include "comm/run/checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "comm/base/limits.h"
#include "comm/base/little_endian.h"

namespace lockstep::safetensors {
namespace {

using Json = nlohmann::json;

constexpr Type kTypes[] = {
    {"BOOL", 1, 'b'},    {"U8", 1, 'u'},  {"I8", 1, 'i'},  {"F8_E5M2", 1, 'f'}, {"F8_E4M3", 1, 'f'},
    {"F8_E8M0", 1, 'f'}, {"I16", 2, 'i'}, {"U16", 2, 'u'}, {"F16", 2, 'f'},     {"BF16", 2, 'f'},
    {"I32", 4, 'i'},     {"U32", 4, 'u'}, {"F32", 4, 'f'}, {"C64", 8, 'c'},     {"F64", 8, 'f'},
    {"I64", 8, 'i'},     {"U64", 8, 'u'},
};
constexpr size_t kShownBytes = 32;  // of an unknown name
// {"name": {"shape": [1]}}: nothing legal is deeper, and a bomb of brackets stops here.
constexpr int kMaxDepth = 3;

Status bad(const std::string& what) {
  return Status(Code::kBadData, "not a valid safetensors file: " + what);
}

Status bad_tensor(const std::string& name, const std::string& what) {
  return bad("tensor '" + name + "' " + what);
}

// JSON into a tree, refusing what a tree would hide: a key given twice and needless depth.
Result<Json> parse_object(std::string_view text) {
  std::set<std::string> keys;
  bool duplicate = false;
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) too_deep = true;
    if (event == Json::parse_event_t::key && depth == 1)
      duplicate |= !keys.insert(value.get<std::string>()).second;
    return !too_deep && !duplicate;
  };
  Json root = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (duplicate) return bad("a name occurs twice in the header");
  if (too_deep) return bad("the header is nested too deeply");
  if (root.is_discarded() || !root.is_object()) return bad("the header is not a JSON object");
  return root;
}

// A number that fits into int64; JSON has others.
std::optional<int64_t> as_count(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const uint64_t count = value.get<uint64_t>();
  if (count > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(count);
}

Result<Entry> parse_entry(const std::string& name, const Json& value) {
  if (name.empty()) return bad("a tensor has no name");
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    return bad_tensor(name, "needs exactly dtype, shape and data_offsets");
  Entry entry;
  entry.name = name;

  const Json& dtype = value["dtype"];
  if (!dtype.is_string()) return bad_tensor(name, "has a dtype that is not a string");
  entry.type = type_of(dtype.get_ref<const std::string&>());
  if (entry.type == nullptr)
    return bad_tensor(name, "has the unknown dtype '" +
                                dtype.get_ref<const std::string&>().substr(0, kShownBytes) + "'");

  const Json& shape = value["shape"];
  if (!shape.is_array() || shape.size() > limits::kTensorDims)
    return bad_tensor(name, "has a shape that is not a short list");
  for (const Json& dim : shape) {
    const auto count = as_count(dim);
    if (!count) return bad_tensor(name, "has a dimension that is not a natural number");
    entry.shape.push_back(*count);
  }

  const Json& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) return bad_tensor(name, "needs two data_offsets");
  const auto begin = as_count(offsets[0]);
  const auto end = as_count(offsets[1]);
  if (!begin || !end || *begin > *end) return bad_tensor(name, "has impossible data_offsets");
  entry.begin = static_cast<uint64_t>(*begin);
  entry.end = static_cast<uint64_t>(*end);

  const auto bytes = bytes_of(entry.type->bytes, entry.shape);
  if (!bytes || *bytes != entry.end - entry.begin)
    return bad_tensor(name, "has " + std::to_string(entry.end - entry.begin) +
                                " bytes, but shape " + shape_text(entry.shape) + " of " +
                                entry.type->name + " needs another number");
  return entry;
}

Status parse_metadata(const Json& value, std::map<std::string, std::string>& out) {
  if (!value.is_object()) return bad("__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return bad("__metadata__ holds something other than strings");
    out[key] = text.get<std::string>();
  }
  return Status::ok();
}

// S1, for tensors in the order of their bytes.
Status check_cover(const Header& header) {
  uint64_t next = 0;
  for (const Entry& entry : header.tensors) {
    if (entry.begin != next)
      return bad_tensor(entry.name, entry.begin < next ? "overlaps another" : "leaves a hole");
    next = entry.end;
  }
  if (next != header.data_bytes)
    return bad("the tensors need " + std::to_string(next) + " bytes, the file has " +
               std::to_string(header.data_bytes));
  return Status::ok();
}

}  // namespace

const Type* type_of(std::string_view name) {
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [name](const Type& known) { return known.name == name; });
  return type == std::end(kTypes) ? nullptr : type;
}

std::optional<uint64_t> bytes_of(uint64_t element_bytes, std::span<const int64_t> shape) {
  uint64_t bytes = element_bytes;
  for (const int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      return std::nullopt;
  return bytes;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Result<uint64_t> parse_prefix(std::string_view prefix, uint64_t file_bytes) {
  if (prefix.size() < kPrefixBytes || file_bytes < kPrefixBytes)
    return bad("it is shorter than 8 bytes");
  const uint64_t header_bytes = load_le<uint64_t>(reinterpret_cast<const uint8_t*>(prefix.data()));
  if (header_bytes > limits::kSafetensorsHeaderBytes)
    return bad("a header of " + std::to_string(header_bytes) + " bytes is over the limit of " +
               std::to_string(limits::kSafetensorsHeaderBytes));
  if (header_bytes > file_bytes - kPrefixBytes)
    return bad("the header reaches beyond the end of the file");
  return header_bytes;
}

Result<Header> parse_header(std::string_view header, uint64_t file_bytes) {
  const uint64_t data_begin = kPrefixBytes + header.size();
  if (header.empty() || header[0] != '{') return bad("the header does not start with '{'");
  if (file_bytes < data_begin) return bad("the file ends inside its header");
  LOCKSTEP_ASSIGN_OR_RETURN(const Json root, parse_object(header));

  Header out;
  out.data_begin = data_begin;
  out.data_bytes = file_bytes - data_begin;
  if (root.size() > limits::kTensors + 1) return bad("it holds too many tensors");
  for (const auto& [name, value] : root.items()) {
    if (name == kMetadataKey) {
      LOCKSTEP_RETURN_IF_ERROR(parse_metadata(value, out.metadata));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(Entry entry, parse_entry(name, value));
    out.tensors.push_back(std::move(entry));
  }
  // Empty tensors share their offset with the next one: begin, then end, then name orders them.
  std::sort(out.tensors.begin(), out.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  LOCKSTEP_RETURN_IF_ERROR(check_cover(out));
  return out;
}

Result<Header> parse_file(std::string_view file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t bytes, parse_prefix(file, file.size()));
  return parse_header(file.substr(kPrefixBytes, bytes), file.size());
}

}  // namespace lockstep::safetensors
