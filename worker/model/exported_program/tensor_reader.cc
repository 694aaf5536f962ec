#include "worker/model/exported_program/tensor_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/text/printable.h"
#include "worker/model/exported_program/argument_reader.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;

constexpr char kWeights[] = "data/weights/";
constexpr char kConstants[] = "data/constants/";

bool same_extent(const ProgramTensor& a, const ProgramTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides &&
         a.offset == b.offset && a.is_parameter == b.is_parameter;
}

// The elements from the first to the last that the tensor reaches; empty for an overflow.
std::optional<uint64_t> reach_of(const ProgramTensor& tensor) {
  uint64_t reach = 1;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    uint64_t step = 0;
    if (tensor.shape[d] == 0) return 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(tensor.shape[d] - 1),
                               static_cast<uint64_t>(tensor.strides[d]), &step) ||
        __builtin_add_overflow(reach, step, &reach))
      return std::nullopt;
  }
  return reach;
}

std::optional<uint64_t> elements_of(std::span<const int64_t> shape) {
  uint64_t count = 1;
  for (const int64_t n : shape)
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(n), &count)) return std::nullopt;
  return count;
}

bool has_zero(std::span<const int64_t> shape) {
  return std::ranges::find(shape, 0) != shape.end();
}

// True if no two elements share a place.
bool is_apart(const ProgramTensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.shape[d] > 1) dims.emplace_back(tensor.strides[d], tensor.shape[d]);
  std::ranges::sort(dims);
  int64_t reach = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

}  // namespace

TensorReader::TensorReader(JsonFields& fields, const json& weights, const json& constants,
                           ReadFile read_file, std::shared_ptr<const void> mapping)
    : fields_(fields),
      weights_(fields.object(weights, "config")),
      constants_(fields.object(constants, "config")),
      read_file_(std::move(read_file)),
      mapping_(std::move(mapping)) {}

uint32_t TensorReader::find(const std::string& name, InputKind kind, bool is_saved) {
  const json& list = is_saved ? weights_ : constants_;
  const auto entry = list.find(name);
  if (entry == list.end()) {
    fields_.malformed("no file holds " + printable(name));
    return 0;
  }
  ProgramTensor tensor = read(name, *entry, is_saved ? kWeights : kConstants);
  tensor.is_persistent = is_saved;
  if (tensor.is_parameter != (kind == InputKind::kParameter))
    fields_.malformed("the lists disagree whether " + printable(name) + " is a parameter");
  if (!fields_.is_ok()) return 0;
  if (const auto known = by_entry_.find(tensor.entry); known != by_entry_.end()) {
    ProgramTensor& first = tensors_[known->second];
    check_tied(name, tensor, first);
    if (std::ranges::find(first.names, name) == first.names.end()) first.names.push_back(name);
    return known->second;
  }
  read_bytes(printable(name), tensor);
  if (!fields_.is_ok()) return 0;
  if (tensor.is_parameter) check_parameter(tensor);
  const auto index = static_cast<uint32_t>(tensors_.size());
  if (index >= limits::kTensors)
    fields_.fail({Code::kConfig, "holds more than " + std::to_string(limits::kTensors) +
                                     " tensors; export a smaller model"});
  by_entry_.emplace(tensor.entry, index);
  tensors_.push_back(std::move(tensor));
  return index;
}

void TensorReader::check_tied(const std::string& name, const ProgramTensor& tensor,
                              const ProgramTensor& first) {
  if (same_extent(first, tensor)) return;
  fields_.fail({Code::kConfig, "holds " + printable(name) +
                                   ", which shares a part of its memory with " +
                                   printable(first.name()) +
                                   "; give each a tensor of its own (clone()) and export again"});
}

std::vector<ProgramTensor> TensorReader::take() {
  if (!weights_.is_object()) return std::move(tensors_);
  for (const auto& [name, entry] : weights_.items()) {
    const json& path = fields_.optional(entry, "path_name");
    if (!path.is_string()) continue;
    const auto known = by_entry_.find(kWeights + path.get<std::string>());
    if (known == by_entry_.end()) continue;
    ProgramTensor& tensor = tensors_[known->second];
    if (std::ranges::find(tensor.names, name) != tensor.names.end()) continue;
    check_tied(name, read(name, entry, kWeights), tensor);
    tensor.names.push_back(name);
  }
  return std::move(tensors_);
}

ProgramTensor TensorReader::read(const std::string& name, const json& entry,
                                 const std::string& folder) {
  const std::string who = printable(name);
  ProgramTensor tensor;
  tensor.names = {name};
  tensor.entry = folder + fields_.text(entry, "path_name");
  tensor.is_parameter = fields_.boolean(entry, "is_param");
  if (fields_.boolean(entry, "use_pickle"))
    fields_.fail({Code::kConfig, "holds " + who +
                                     " as a pickle, which may run any code when it is "
                                     "read; make it a plain tensor and export again"});
  const json& meta = fields_.object(entry, "tensor_meta");
  if (!fields_.is_ok()) return tensor;
  tensor.dtype = read_dtype(fields_, fields_.optional(meta, "dtype"), "the tensor " + who);
  tensor.requires_grad = fields_.boolean(meta, "requires_grad");
  if (fields_.integer(meta, "layout") != static_cast<int64_t>(ProgramLayout::kStrided))
    fields_.fail({Code::kConfig, "holds " + who +
                                     ", which is not dense; make it a dense tensor and "
                                     "export again"});
  read_extents(meta, who, tensor);
  return tensor;
}

void TensorReader::read_extents(const json& meta, const std::string& who, ProgramTensor& tensor) {
  const auto number = [&](const json& tagged) {
    const int64_t n = fields_.integer(tagged, "as_int");
    if (n < 0) fields_.malformed("the extents of " + who + " are negative");
    return std::max<int64_t>(n, 0);
  };
  for (const json& size : fields_.list(meta, "sizes")) tensor.shape.push_back(number(size));
  for (const json& stride : fields_.list(meta, "strides")) tensor.strides.push_back(number(stride));
  tensor.offset = number(fields_.object(meta, "storage_offset"));
  if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > limits::kTensorDims)
    fields_.malformed("the shape of " + who + " does not fit its strides");
}

void TensorReader::read_bytes(const std::string& who, ProgramTensor& tensor) {
  const auto content = read_file_(tensor.entry);
  if (!content.is_ok()) return fields_.fail(content.status());
  tensor.bytes = *content;
  tensor.mapping = mapping_;
  const uint64_t held = tensor.bytes.size() / bytes_of(tensor.dtype);
  const auto count = has_zero(tensor.shape) ? 0 : elements_of(tensor.shape);
  const auto reach = reach_of(tensor);
  const auto offset = static_cast<uint64_t>(tensor.offset);
  if (!count || !reach || offset > held || *reach > held - offset)
    return fields_.malformed("the shape of " + who + " reaches beyond its " +
                             std::to_string(tensor.bytes.size()) + " bytes");
  if (*count > *reach && *count > limits::kProgramRepeatedBytes / bytes_of(tensor.dtype))
    fields_.malformed(who + " repeats its bytes too often");
}

void TensorReader::check_parameter(const ProgramTensor& tensor) {
  const std::string who = "holds the parameter " + printable(tensor.name());
  if (tensor.dtype != ProgramDtype::kFloat)
    fields_.fail({Code::kConfig, who + " of " + name_of(tensor.dtype) +
                                     ", and Lockstep trains float32; export model.float(), and set "
                                     "train.precision for half precision"});
  if (!is_apart(tensor))
    fields_.fail({Code::kConfig, who + ", whose elements share memory; make it contiguous() and "
                                       "export again"});
}

}  // namespace lockstep::exported
