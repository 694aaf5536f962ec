#include "data/base/sampled_hash.h"

#include "comm/base/prng.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kBlockBytes = 4 * kKib;  // of content that is not hashed whole
constexpr uint64_t kBlocks = 16;

}  // namespace

void hash_sampled(uint64_t bytes, const AddContentFn& add, uint64_t whole_bytes) {
  if (bytes <= whole_bytes || bytes <= kBlockBytes) return add(0, bytes);
  const uint64_t places = bytes - kBlockBytes + 1;
  add(0, kBlockBytes);
  add(places - 1, kBlockBytes);
  const uint64_t key = stream_key({bytes, kBlocks});
  for (uint64_t i = 0; i < kBlocks; ++i) add(stream_value(key, i) % places, kBlockBytes);
}

void hash_sampled(std::span<const uint8_t> content, uint64_t whole_bytes, Xxh3& hash) {
  const auto add = [&](uint64_t offset, uint64_t bytes) {
    hash.update(content.data() + offset, bytes);
  };
  hash_sampled(content.size(), add, whole_bytes);
}

}  // namespace lockstep::data
