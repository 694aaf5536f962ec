// The order of the samples of one epoch. For one data set it is a pass over the data set
// (pass_order.h). For a mixture it is a pass over the first data set (mixed_order.h), with samples
// of the others in between. A loader can start anywhere; nothing is stored, shuffled or exchanged.
//
// INVARIANTS
//  O1 For one data set, at() is a permutation of [0, samples) for every OrderSpec and epoch.
//  O2 The order is a function of (OrderSpec, epoch, its version) only. Another algorithm needs
//     another version: the number is part of a run's identity.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "comm/base/ids.h"
#include "comm/run/plan/mixed_order.h"
#include "comm/run/plan/pass_order.h"

namespace lockstep {

// The values that fix the order of a run's samples. A run gets it from its job and its data
// (job_order.h). The audit gets it from the run's frozen identity (coordinator/audit/run_order.h).
struct OrderSpec {
  uint64_t seed = 0;
  std::string fingerprint;  // of the training data
  uint64_t samples = 0;     // of an epoch: of the training data; for a mixture units_of(parts)
  BlockShuffle blocks = {};
  uint32_t classes = 0;               // ClassOrder's; 0: none. Not with blocks, not with a mixture
  std::vector<MixedPart> parts = {};  // of a mixture
  bool operator==(const OrderSpec&) const = default;
};

// Versions of mixtures, of single samples and of blocks. pass_order.h has the versions for one data
// set.
inline constexpr uint64_t kMixedOrderVersion = 3;
inline constexpr uint64_t kMixedBlockOrderVersion = 4;

struct OrderKind {
  bool has_blocks = false;
  bool has_classes = false;
  bool is_mixed = false;
};
inline uint64_t order_version(const OrderKind& kind) {
  if (kind.is_mixed) return kind.has_blocks ? kMixedBlockOrderVersion : kMixedOrderVersion;
  if (kind.has_classes) return kClassOrderVersion;
  return kind.has_blocks ? kBlockOrderVersion : kOrderVersion;
}

class EpochOrder {
 public:
  // REQUIRES: 0 < spec.samples <= 2^62; for a mixture check_mixture(spec.parts).
  EpochOrder(const OrderSpec& spec, Epoch epoch);

  // The sample at `position` of the epoch. The samples of a mixture are numbered part after part.
  // REQUIRES: position < spec.samples.
  uint64_t at(uint64_t position) const {
    if (const auto* pass = std::get_if<PassOrder>(&order_)) return pass->at(position);
    return std::get<MixedOrder>(order_).at(position);
  }
  // Null for the order of one data set.
  const MixedOrder* mixed() const { return std::get_if<MixedOrder>(&order_); }

 private:
  std::variant<PassOrder, MixedOrder> order_;
};

}  // namespace lockstep
