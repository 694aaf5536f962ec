#include "comm/run/checkpoint/held_state.h"

#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "comm/run/checkpoint/safetensors.h"

namespace lockstep {
namespace {

std::string type_and_shape(const StateTensor& tensor) {
  return std::string(dtype_safetensors_name(tensor.dtype)) + safetensors::shape_text(tensor.shape);
}

using TensorKey = std::pair<bool, std::string>;  // of the optimizer; name

TensorKey key_of(const StateTensor& tensor) {
  return {tensor.section == StateSection::kOptimizer, tensor.name};
}

}  // namespace

Result<std::span<std::byte>> HeldState::add(StateSection section, std::string name, DType dtype,
                                            std::vector<int64_t> shape) {
  const auto bytes = tensor_bytes(dtype, shape);
  if (!bytes)
    return Status(Code::kBadData, "tensor '" + name + "' of shape " +
                                      safetensors::shape_text(shape) + " has no size in bytes");
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[*bytes]);
  if (memory == nullptr)
    return Status(Code::kNoMemory, "there is no memory for tensor '" + name + "' of " +
                                       std::to_string(*bytes) +
                                       " bytes; give this process more, or use a smaller model");
  tensors_.push_back({section, std::move(name), dtype, std::move(shape), memory.get(), *bytes});
  memory_.push_back(std::move(memory));
  return std::span(tensors_.back().data, tensors_.back().bytes);
}

uint64_t HeldState::bytes() const {
  uint64_t sum = 0;
  for (const StateTensor& tensor : tensors_) sum += tensor.bytes;
  return sum;
}

Status install_tensors(std::span<const StateTensor> from, std::span<const StateTensor> into) {
  std::map<TensorKey, const StateTensor*> left;
  for (const StateTensor& tensor : into) left[key_of(tensor)] = &tensor;
  std::vector<std::pair<const StateTensor*, const StateTensor*>> pairs;
  for (const StateTensor& tensor : from) {
    const auto it = left.find(key_of(tensor));
    if (it == left.end())
      return Status(Code::kBadData, "tensor '" + tensor.name +
                                        "' of the state to install does not belong to this model, "
                                        "or comes twice");
    const StateTensor& to = *it->second;
    if (tensor.dtype != to.dtype || tensor.shape != to.shape || tensor.bytes != to.bytes)
      return Status(Code::kBadData, "tensor '" + tensor.name + "' is " + type_and_shape(tensor) +
                                        " in the state to install, but " + type_and_shape(to) +
                                        " in the model");
    pairs.emplace_back(&tensor, &to);
    left.erase(it);
  }
  if (!left.empty())
    return Status(Code::kBadData, "the state to install lacks tensor '" +
                                      left.begin()->second->name + "' and " +
                                      std::to_string(left.size() - 1) + " others");
  for (const auto& [source, to] : pairs)
    if (source->data != to->data && to->bytes > 0) std::memcpy(to->data, source->data, to->bytes);
  return Status::ok();
}

}  // namespace lockstep
