#include "comm/collectives/cross_check.h"

#include <cstdlib>
#include <string>

#include "comm/base/hash.h"

namespace lockstep {

bool takes_part(uint32_t rank, uint32_t owner, uint32_t world_size) {
  return (rank + world_size - owner) % world_size <= kCheckers;
}

uint64_t hash_of(const float* values, uint64_t count) {
  return std::strtoull(xxh3_hex(values, count * sizeof(float)).substr(0, 16).c_str(), nullptr, 16);
}

}  // namespace lockstep
