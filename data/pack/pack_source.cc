#include "data/pack/pack_source.h"

#include <algorithm>

namespace lockstep::data {

std::vector<PackShard> cut_evenly(uint64_t units, uint64_t unit_bytes, uint64_t shard_bytes) {
  std::vector<PackShard> shards;
  const uint64_t each = std::max<uint64_t>(1, shard_bytes / unit_bytes);
  for (uint64_t begin = 0; begin < units; begin += each) {
    const uint64_t end = std::min(units, begin + each);
    shards.push_back({begin, end, end - begin, 0, (end - begin) * unit_bytes});
  }
  return shards;
}

}  // namespace lockstep::data
