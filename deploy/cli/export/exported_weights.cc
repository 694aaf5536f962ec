#include "deploy/cli/export/exported_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "coordinator/checkpoint/safetensors.h"

namespace lockstep {
namespace {

constexpr char kGpt2Prefix[] = "transformer.";
constexpr std::string_view kTurned[] = {".c_attn.weight", ".c_proj.weight", ".c_fc.weight"};
constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI64, DType::kU8};

bool is_turned(const FileTensor& tensor) {
  return tensor.shape.size() == 2 && std::ranges::any_of(kTurned, [&](std::string_view ending) {
           return tensor.name.ends_with(ending);
         });
}

std::vector<float> transposed(const FileTensor& tensor) {
  const auto rows = static_cast<size_t>(tensor.shape[0]);
  const auto columns = static_cast<size_t>(tensor.shape[1]);
  std::vector<float> out(rows * columns);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      std::memcpy(&out[c * rows + r], tensor.data + (r * columns + c) * sizeof(float),
                  sizeof(float));
  return out;
}

}  // namespace

Result<ExportedWeights> ExportedWeights::of(const std::string& model, const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(WeightFiles files, WeightFiles::open(path));
  ExportedWeights out(std::move(files));
  for (const FileTensor& tensor : out.files_.tensors())
    LOCKSTEP_RETURN_IF_ERROR(out.add(model, tensor));
  return out;
}

Status ExportedWeights::add(const std::string& model, const FileTensor& tensor) {
  const auto* type = std::ranges::find_if(kTypes, [&](DType t) {
    return std::string_view(dtype_safetensors_name(t)) == tensor.type->name;
  });
  if (type == std::end(kTypes))
    return {Code::kBadData, "the checkpoint has the tensor " + tensor.name + " of type " +
                                tensor.type->name + ", which no checkpoint has"};
  StateTensor out{StateSection::kParameter,
                  tensor.name,
                  *type,
                  tensor.shape,
                  nullptr,
                  *safetensors::bytes_of(tensor.type->bytes, tensor.shape)};
  // Only read, when the file is made.
  out.data = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(tensor.data));
  if (model == "gpt2") {
    out.name = kGpt2Prefix + tensor.name;
    if (is_turned(tensor) && *type == DType::kF32) {
      std::vector<float>& content = turned_.emplace_back(transposed(tensor));
      out.data = reinterpret_cast<std::byte*>(content.data());
      std::swap(out.shape[0], out.shape[1]);
    }
  }
  tensors_.push_back(std::move(out));
  return Status::ok();
}

const FileTensor* ExportedWeights::find(const std::string& name) const {
  const auto at = std::ranges::find(files_.tensors(), name, &FileTensor::name);
  return at == files_.tensors().end() ? nullptr : &*at;
}

Result<std::string> ExportedWeights::safetensors() const {
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsPlan plan,
                            plan_safetensors(tensors_, {{"format", "pt"}}));
  std::string out = plan.prefix;
  out.reserve(plan.file_bytes);
  for (const StateTensor* tensor : plan.order)
    out.append(reinterpret_cast<const char*>(tensor->data), tensor->bytes);
  LOCKSTEP_RETURN_IF_ERROR(files_.unchanged());
  return out;
}

}  // namespace lockstep
