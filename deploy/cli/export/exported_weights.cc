#include "deploy/cli/export/exported_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "deploy/cli/export/stored_tensors.h"
#include "worker/model/int8/int8_values.h"
#include "worker/model/weights/dequantize.h"

namespace lockstep {
namespace {

constexpr char kGpt2Prefix[] = "transformer.";
constexpr std::string_view kTurned[] = {".c_attn.weight", ".c_proj.weight", ".c_fc.weight"};

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
  LOCKSTEP_ASSIGN_OR_RETURN(WeightFiles files, WeightFiles::open(path, WeightSource::kRun));
  ExportedWeights out(std::move(files));
  for (const FileTensor& tensor : out.files_.tensors())
    LOCKSTEP_RETURN_IF_ERROR(out.add(model, tensor));
  return out;
}

Status ExportedWeights::add(const std::string& model, const FileTensor& tensor) {
  LOCKSTEP_ASSIGN_OR_RETURN(StateTensor out, state_tensor_of(tensor));
  if (model == "gpt2") {
    out.name = kGpt2Prefix + tensor.name;
    if (is_turned(tensor) && out.dtype == DType::kF32) {
      std::vector<float>& content = turned_.emplace_back(transposed(tensor));
      out.data = reinterpret_cast<std::byte*>(content.data());
      std::swap(out.shape[0], out.shape[1]);
      turned_names_.insert(out.name);
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
  LOCKSTEP_ASSIGN_OR_RETURN(std::string out, safetensors_text(tensors_, {{"format", "pt"}}));
  LOCKSTEP_RETURN_IF_ERROR(files_.unchanged());
  return out;
}

Result<std::string> ExportedWeights::int8_safetensors(uint32_t* tensors_in_int8) const {
  std::vector<NamedContent> out;
  std::deque<Int8Values> held;
  for (const StateTensor& tensor : tensors_) {
    const size_t dim = turned_names_.contains(tensor.name) ? 1 : 0;  // of the output channels
    if (tensor.dtype != DType::kF32 || !is_worth_int8(tensor.shape, dim)) {
      out.push_back({tensor.name,
                     safetensors::type_of(dtype_safetensors_name(tensor.dtype)),
                     tensor.shape,
                     {tensor.data, tensor.bytes}});
      continue;
    }
    std::vector<float> floats(tensor.bytes / sizeof(float));
    std::memcpy(floats.data(), tensor.data, tensor.bytes);
    LOCKSTEP_ASSIGN_OR_RETURN(Int8Values made,
                              to_int8(tensor.name, floats, extents_along(tensor.shape, dim)));
    const Int8Values& values = held.emplace_back(std::move(made));
    std::vector<int64_t> channels(tensor.shape.size(), 1);
    channels[dim] = tensor.shape[dim];
    out.push_back({tensor.name, safetensors::type_of("I8"), tensor.shape,
                   std::as_bytes(std::span(values.numbers))});
    out.push_back({tensor.name + kScaleEnding, safetensors::type_of("F32"), channels,
                   std::as_bytes(std::span(values.scales))});
  }
  *tensors_in_int8 = static_cast<uint32_t>(held.size());
  if (held.empty())
    return Status(Code::kConfig,
                  "the model has no matrix and no kernel that 8 bits would make smaller; export it "
                  "without --int8");
  LOCKSTEP_ASSIGN_OR_RETURN(std::string text,
                            safetensors_text_of(std::move(out), {{"format", "pt"}}));
  LOCKSTEP_RETURN_IF_ERROR(files_.unchanged());
  return text;
}

}  // namespace lockstep
