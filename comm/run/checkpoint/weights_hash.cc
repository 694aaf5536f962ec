#include "comm/run/checkpoint/weights_hash.h"

#include <algorithm>
#include <vector>

#include "comm/base/little_endian.h"

namespace lockstep {
namespace {

void hash_sorted(WeightsHasher& hasher, std::span<const StateTensor> state, bool is_optimizer) {
  std::vector<const StateTensor*> tensors;
  for (const StateTensor& tensor : state)
    if ((tensor.section == StateSection::kOptimizer) == is_optimizer) tensors.push_back(&tensor);
  std::sort(tensors.begin(), tensors.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const StateTensor* tensor : tensors) {
    hasher.begin_tensor(tensor->name, tensor->dtype, tensor->shape, tensor->bytes);
    hasher.data({tensor->data, tensor->bytes});
  }
}

void hash_weights(WeightsHasher& hasher, std::span<const StateTensor> state) {
  hash_sorted(hasher, state, false);
}

void hash_optimizer(WeightsHasher& hasher, std::span<const StateTensor> state) {
  hasher.begin_optimizer();
  hash_sorted(hasher, state, true);
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

std::string WeightsHasher::so_far() const {
  const Digest256 digest = hash_.so_far();
  return to_hex(digest);
}

std::string WeightsHasher::finish() {
  const Digest256 digest = hash_.finish();
  return to_hex(digest);
}

std::string weights_hash(std::span<const StateTensor> state, bool all) {
  WeightsHasher hasher;
  hash_weights(hasher, state);
  if (all) hash_optimizer(hasher, state);
  return hasher.finish();
}

WeightsHashes weights_hashes(std::span<const StateTensor> state) {
  WeightsHashes hashes;
  WeightsHasher hasher;
  hash_weights(hasher, state);
  hashes.weights = hasher.so_far();
  hash_optimizer(hasher, state);
  hashes.state = hasher.finish();
  return hashes;
}

}  // namespace lockstep
