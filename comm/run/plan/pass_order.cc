#include "comm/run/plan/pass_order.h"

#include <xxhash.h>

#include "comm/base/prng.h"

namespace lockstep {
namespace {

uint64_t pass_key(const PassSpec& spec, uint64_t pass) {
  const uint64_t kind = static_cast<uint64_t>(StreamKind::kOrder);
  if (spec.classes > 0)
    return stream_key({kind, kClassOrderVersion, spec.seed, pass, spec.name.low, spec.name.high,
                       uint64_t{spec.classes}});
  if (!spec.blocks.is_on())
    return stream_key({kind, kOrderVersion, spec.seed, pass, spec.name.low, spec.name.high});
  return stream_key({kind, kBlockOrderVersion, spec.seed, pass, spec.name.low, spec.name.high,
                     spec.blocks.block_samples, spec.blocks.window_blocks});
}

std::variant<FeistelPermutation, BlockOrder, ClassOrder> make_order(const PassSpec& spec,
                                                                    uint64_t pass) {
  const uint64_t key = pass_key(spec, pass);
  if (spec.classes > 0) return ClassOrder(key, spec.samples, spec.classes);
  if (spec.blocks.is_on()) return BlockOrder(key, spec.samples, spec.blocks);
  return FeistelPermutation(key, spec.samples);
}

}  // namespace

NameKey name_key(std::string_view name) {
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  return {hash.low64, hash.high64};
}

PassOrder::PassOrder(const PassSpec& spec, uint64_t pass) : order_(make_order(spec, pass)) {}

}  // namespace lockstep
