#include "comm/run/checkpoint/state_hash.h"

namespace lockstep {

uint64_t hash_of(std::span<const StateTensor> state) {
  CheckHash hash;
  for (const StateTensor& tensor : state) hash.update(tensor.data, tensor.bytes);
  return hash.value();
}

}  // namespace lockstep
