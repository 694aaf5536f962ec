// The order of one pass over one data set: a permutation of [0, samples) in O(1) memory, of single
// samples (feistel.h), of blocks (block_order.h) or class after class (class_order.h).
//
// INVARIANTS
//  O1 at() is a permutation of [0, samples) for every PassSpec and pass.
//  O2 The order is a function of (PassSpec, pass, its version) only. Another algorithm needs
//     another version: the number is part of the key and of a run's identity.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "comm/run/plan/block_order.h"
#include "comm/run/plan/class_order.h"
#include "comm/run/plan/feistel.h"

namespace lockstep {

inline constexpr uint64_t kOrderVersion = 1;       // of single samples
inline constexpr uint64_t kBlockOrderVersion = 2;  // of blocks
inline constexpr uint64_t kClassOrderVersion = 5;  // of classes; mixtures have other numbers

// The part that a name, such as a fingerprint, adds to the key of a random stream.
struct NameKey {
  uint64_t low = 0;
  uint64_t high = 0;
};
NameKey name_key(std::string_view name);

struct PassSpec {
  uint64_t seed = 0;
  NameKey name;          // of the data set's fingerprint
  uint64_t samples = 0;  // 0 < samples <= 2^62
  BlockShuffle blocks = {};
  uint32_t classes = 0;  // 0: none. Not with blocks
};

class PassOrder {
 public:
  PassOrder(const PassSpec& spec, uint64_t pass);

  // The sample at `position` of the pass. REQUIRES: position < samples.
  uint64_t at(uint64_t position) const {
    if (const auto* single = std::get_if<FeistelPermutation>(&order_)) return single->at(position);
    if (const auto* blocks = std::get_if<BlockOrder>(&order_)) return blocks->at(position);
    return std::get<ClassOrder>(order_).at(position);
  }

 private:
  std::variant<FeistelPermutation, BlockOrder, ClassOrder> order_;
};

}  // namespace lockstep
