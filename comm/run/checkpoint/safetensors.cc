#include "comm/run/checkpoint/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "comm/base/limits.h"
#include "comm/base/little_endian.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

std::optional<DType> dtype_of(const safetensors::Type& type) {
  for (const DType dtype : kDTypes)
    if (std::string_view(type.name) == dtype_safetensors_name(dtype)) return dtype;
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape) {
  return safetensors::bytes_of(dtype_bytes(dtype), shape);
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view header, uint64_t file_bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(safetensors::Header parsed,
                            safetensors::parse_header(header, file_bytes));
  SafetensorsHeader out{{}, std::move(parsed.metadata), parsed.data_begin, parsed.data_bytes};
  for (safetensors::Entry& entry : parsed.tensors) {
    const auto dtype = dtype_of(*entry.type);
    if (!dtype)
      return Status(Code::kBadData, "not a checkpoint: tensor '" + entry.name + "' is of " +
                                        entry.type->name + ", which no state has");
    out.tensors.push_back(
        {std::move(entry.name), *dtype, std::move(entry.shape), entry.begin, entry.end});
  }
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
  if (!metadata.empty()) root[safetensors::kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const StateTensor* tensor : plan.order) {
    const auto bytes = tensor_bytes(tensor->dtype, tensor->shape);
    if (!bytes || *bytes != tensor->bytes || tensor->shape.size() > limits::kTensorDims)
      return Status(Code::kUsage, "tensor '" + tensor->name + "' of shape " +
                                      safetensors::shape_text(tensor->shape) + " does not have " +
                                      std::to_string(tensor->bytes) + " bytes");
    if (tensor->name.empty() || tensor->name == safetensors::kMetadataKey ||
        root.contains(tensor->name))
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
