#include "deploy/cli/export/stored_tensors.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "coordinator/checkpoint/safetensors.h"

namespace lockstep {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI64, DType::kU8};

}  // namespace

Result<StateTensor> state_tensor_of(const FileTensor& tensor) {
  const auto* type = std::ranges::find_if(kTypes, [&](DType t) {
    return std::string_view(dtype_safetensors_name(t)) == tensor.type->name;
  });
  if (type == std::end(kTypes))
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

}  // namespace lockstep
