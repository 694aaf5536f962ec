#include "deploy/cli/export/stored_tensors.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/little_endian.h"
#include "comm/run/checkpoint/safetensors.h"

namespace lockstep {

Result<StateTensor> state_tensor_of(const FileTensor& tensor) {
  const auto* type = std::ranges::find_if(kDTypes, [&](DType t) {
    return std::string_view(dtype_safetensors_name(t)) == tensor.type->name;
  });
  if (type == std::end(kDTypes))
    return Status(Code::kBadData, "the checkpoint has the tensor " + tensor.name + " of type " +
                                      tensor.type->name + ", which no checkpoint has");
  return StateTensor{StateSection::kParameter,
                     tensor.name,
                     *type,
                     tensor.shape,
                     reinterpret_cast<std::byte*>(const_cast<uint8_t*>(tensor.data)),
                     *safetensors::bytes_of(tensor.type->bytes, tensor.shape)};
}

Result<std::string> safetensors_text(std::span<const StateTensor> tensors,
                                     const std::map<std::string, std::string>& metadata) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsPlan plan, plan_safetensors(tensors, metadata));
  std::string out = plan.prefix;
  out.reserve(plan.file_bytes);
  for (const StateTensor* tensor : plan.order)
    out.append(reinterpret_cast<const char*>(tensor->data), tensor->bytes);
  return out;
}

Result<std::string> safetensors_text_of(std::vector<NamedContent> tensors,
                                        const std::map<std::string, std::string>& metadata) {
  std::ranges::stable_sort(tensors, std::greater<>(),
                           [](const NamedContent& tensor) { return tensor.type->bytes; });
  nlohmann::json root = {{safetensors::kMetadataKey, metadata}};
  uint64_t end = 0;
  for (const NamedContent& tensor : tensors) {
    const uint64_t begin = std::exchange(end, end + tensor.bytes.size());
    root[tensor.name] = {
        {"dtype", tensor.type->name}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string header = root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > limits::kSafetensorsHeaderBytes)
    return Status(Code::kUsage, "the header of the safetensors file is over the limit");
  std::string out;
  append_le64(out, header.size());
  out += header;
  out.reserve(out.size() + end);
  for (const NamedContent& tensor : tensors)
    out.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return out;
}

}  // namespace lockstep
