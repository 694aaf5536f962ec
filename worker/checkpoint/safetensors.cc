#include "worker/checkpoint/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/base/limits.h"
#include "worker/checkpoint/little_endian.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr char kMetadataKey[] = "__metadata__";
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

Result<SafetensorsEntry> parse_entry(const std::string& name, const Json& value) {
  if (name.empty()) return bad("a tensor has no name");
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    return bad_tensor(name, "needs exactly dtype, shape and data_offsets");
  SafetensorsEntry entry;
  entry.name = name;

  const Json& dtype = value["dtype"];
  if (!dtype.is_string()) return bad_tensor(name, "has a dtype that is not a string");
  const auto known = dtype_from_name(dtype.get_ref<const std::string&>());
  if (!known) return bad_tensor(name, "has a dtype other than F32, F64, I64, U8");
  entry.dtype = *known;

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

  const auto bytes = tensor_bytes(entry.dtype, entry.shape);
  if (!bytes || *bytes != entry.end - entry.begin)
    return bad_tensor(name, "has " + std::to_string(entry.end - entry.begin) +
                                " bytes, but shape " + shape_text(entry.shape) + " of " +
                                dtype_safetensors_name(entry.dtype) + " needs another number");
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
Status check_cover(const SafetensorsHeader& header) {
  uint64_t next = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
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

std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape) {
  uint64_t bytes = dtype_bytes(dtype);
  for (const int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      return std::nullopt;
  return bytes;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kU8})
    if (name == dtype_safetensors_name(dtype)) return dtype;
  return std::nullopt;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Result<uint64_t> parse_safetensors_prefix(std::string_view prefix, uint64_t file_bytes) {
  if (prefix.size() < kSafetensorsPrefixBytes || file_bytes < kSafetensorsPrefixBytes)
    return bad("it is shorter than 8 bytes");
  const uint64_t header_bytes = load_le64(prefix.data());
  if (header_bytes > limits::kSafetensorsHeaderBytes)
    return bad("a header of " + std::to_string(header_bytes) + " bytes is over the limit of " +
               std::to_string(limits::kSafetensorsHeaderBytes));
  if (header_bytes > file_bytes - kSafetensorsPrefixBytes)
    return bad("the header reaches beyond the end of the file");
  return header_bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view header, uint64_t file_bytes) {
  const uint64_t data_begin = kSafetensorsPrefixBytes + header.size();
  if (header.empty() || header[0] != '{') return bad("the header does not start with '{'");
  if (file_bytes < data_begin) return bad("the file ends inside its header");
  LOCKSTEP_ASSIGN_OR_RETURN(const Json root, parse_object(header));

  SafetensorsHeader out;
  out.data_begin = data_begin;
  out.data_bytes = file_bytes - data_begin;
  if (root.size() > limits::kTensors + 1) return bad("it holds too many tensors");
  for (const auto& [name, value] : root.items()) {
    if (name == kMetadataKey) {
      LOCKSTEP_RETURN_IF_ERROR(parse_metadata(value, out.metadata));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(SafetensorsEntry entry, parse_entry(name, value));
    out.tensors.push_back(std::move(entry));
  }
  // Empty tensors share their offset with the next one: begin, then end, then name orders them.
  std::sort(out.tensors.begin(), out.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  LOCKSTEP_RETURN_IF_ERROR(check_cover(out));
  return out;
}

Result<SafetensorsPlan> plan_safetensors(std::span<const StateTensor> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  if (tensors.size() > limits::kTensors)
    return Status(Code::kUsage, "too many tensors for one safetensors file");
  SafetensorsPlan plan;
  for (const StateTensor& tensor : tensors) plan.order.push_back(&tensor);
  std::sort(plan.order.begin(), plan.order.end(), [](const auto* a, const auto* b) {
    const size_t size_a = dtype_bytes(a->dtype);
    const size_t size_b = dtype_bytes(b->dtype);
    return size_a != size_b ? size_a > size_b : a->name < b->name;
  });

  Json root = Json::object();
  if (!metadata.empty()) root[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const StateTensor* tensor : plan.order) {
    const auto bytes = tensor_bytes(tensor->dtype, tensor->shape);
    if (!bytes || *bytes != tensor->bytes || tensor->shape.size() > limits::kTensorDims)
      return Status(Code::kUsage, "tensor '" + tensor->name + "' of shape " +
                                      shape_text(tensor->shape) + " does not have " +
                                      std::to_string(tensor->bytes) + " bytes");
    if (tensor->name.empty() || tensor->name == kMetadataKey || root.contains(tensor->name))
      return Status(Code::kUsage, "tensor name '" + tensor->name + "' is empty or not unique");
    root[tensor->name] = {{"dtype", dtype_safetensors_name(tensor->dtype)},
                          {"shape", tensor->shape},
                          {"data_offsets", {offset, offset + *bytes}}};
    offset += *bytes;
  }
  std::string header = root.dump(-1, ' ', false, Json::error_handler_t::replace);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > limits::kSafetensorsHeaderBytes)
    return Status(Code::kUsage, "the header of the safetensors file is over the limit");
  append_le64(plan.prefix, header.size());
  plan.prefix += header;
  plan.file_bytes = plan.prefix.size() + offset;
  return plan;
}

}  // namespace lockstep
