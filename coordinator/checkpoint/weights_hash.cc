#include "coordinator/checkpoint/weights_hash.h"

#include <algorithm>
#include <vector>

#include "coordinator/checkpoint/append_le64.h"

namespace lockstep {
namespace {

void hash_sorted(WeightsHasher& hasher, std::vector<const StateTensor*> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const StateTensor* tensor : tensors) {
    hasher.begin_tensor(tensor->name, tensor->dtype, tensor->shape, tensor->bytes);
    hasher.data({tensor->data, tensor->bytes});
  }
}

}  // namespace

WeightsHasher::WeightsHasher() {
  hash_.update("lockstep weights 1\n");
}

void WeightsHasher::begin_optimizer() {
  hash_.update("optimizer 1\n");
}

void WeightsHasher::begin_tensor(std::string_view name, DType dtype, std::span<const int64_t> shape,
                                 uint64_t bytes) {
  std::string head;
  const std::string_view type = dtype_safetensors_name(dtype);
  append_le64(head, name.size());
  head += name;
  append_le64(head, type.size());
  head += type;
  append_le64(head, shape.size());
  for (const int64_t dim : shape) append_le64(head, static_cast<uint64_t>(dim));
  append_le64(head, bytes);
  hash_.update(head);
}

std::string WeightsHasher::finish() {
  const Digest256 digest = hash_.finish();
  return to_hex(digest);
}

std::string weights_hash(std::span<const StateTensor> state, bool all) {
  std::vector<const StateTensor*> weights;
  std::vector<const StateTensor*> optimizer;
  for (const StateTensor& tensor : state)
    (tensor.section == StateSection::kOptimizer ? optimizer : weights).push_back(&tensor);
  WeightsHasher hasher;
  hash_sorted(hasher, std::move(weights));
  if (all) {
    hasher.begin_optimizer();
    hash_sorted(hasher, std::move(optimizer));
  }
  return hasher.finish();
}

}  // namespace lockstep
