// The order of the samples of one epoch: a permutation of [0, samples) in O(1) memory, of single
// samples (feistel.h) or of blocks (block_order.h). So a loader can start anywhere, and nothing is
// stored, shuffled or exchanged.
//
// INVARIANTS
//  O1 at() is a permutation of [0, samples) for every OrderSpec and epoch.
//  O2 The order is a function of (OrderSpec, epoch, its version) only. Another algorithm needs
//     another version: the number is part of the key and of a run's identity.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "comm/base/ids.h"
#include "data/order/block_order.h"
#include "data/order/feistel.h"

namespace lockstep::data {

// What fixes the order of a run's samples. A run has it from its job and its data (job_order.h);
// who proves it afterwards, from the run's frozen identity (coordinator/audit/run_order.h).
struct OrderSpec {
  uint64_t seed = 0;
  std::string fingerprint;  // of the training data
  uint64_t samples = 0;     // of the training data
  BlockShuffle blocks = {};
  bool operator==(const OrderSpec&) const = default;
};

inline constexpr uint64_t kOrderVersion = 1;       // of single samples
inline constexpr uint64_t kBlockOrderVersion = 2;  // of blocks
inline uint64_t order_version(const BlockShuffle& blocks) {
  return blocks.is_on() ? kBlockOrderVersion : kOrderVersion;
}

// What a name, such as a fingerprint, adds to the key of a stream.
struct NameKey {
  uint64_t low = 0;
  uint64_t high = 0;
};
NameKey name_key(std::string_view name);

class EpochOrder {
 public:
  // REQUIRES: 0 < spec.samples <= 2^62.
  EpochOrder(const OrderSpec& spec, Epoch epoch);

  // The sample at `position` of the epoch. REQUIRES: position < samples.
  uint64_t at(uint64_t position) const {
    if (const auto* single = std::get_if<FeistelPermutation>(&order_)) return single->at(position);
    return std::get<BlockOrder>(order_).at(position);
  }

 private:
  std::variant<FeistelPermutation, BlockOrder> order_;
};

}  // namespace lockstep::data
