#include "data/order/epoch_order.h"

#include <xxhash.h>

#include "comm/base/prng.h"

namespace lockstep::data {
namespace {

uint64_t order_key(const OrderSpec& spec, Epoch epoch) {
  const NameKey name = name_key(spec.fingerprint);
  const uint64_t kind = static_cast<uint64_t>(StreamKind::kOrder);
  if (!spec.blocks.is_on())
    return stream_key({kind, kOrderVersion, spec.seed, epoch, name.low, name.high});
  return stream_key({kind, kBlockOrderVersion, spec.seed, epoch, name.low, name.high,
                     spec.blocks.block_samples, spec.blocks.window_blocks});
}

std::variant<FeistelPermutation, BlockOrder> make_order(const OrderSpec& spec, Epoch epoch) {
  const uint64_t key = order_key(spec, epoch);
  if (spec.blocks.is_on()) return BlockOrder(key, spec.samples, spec.blocks);
  return FeistelPermutation(key, spec.samples);
}

}  // namespace

NameKey name_key(std::string_view name) {
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  return {hash.low64, hash.high64};
}

EpochOrder::EpochOrder(const OrderSpec& spec, Epoch epoch) : order_(make_order(spec, epoch)) {}

}  // namespace lockstep::data
