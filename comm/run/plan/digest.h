// A digest of the samples that a loader really delivered to one slot of one step, in order. Step
// records carry the digest; the audit recomputes it from the seed and compares.
//
// A sample's identity is (dataset, pass, position in the pass, sample index). The samples of a
// mixture are numbered part after part. A missing, repeated, exchanged or wrong sample changes the
// digest, except with probability 2^-64.
//
// Thread-safety: a value; one thread at a time.
#pragma once

#include <cstdint>
#include <span>

#include "comm/base/ids.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/step_plan.h"

namespace lockstep {

class SampleDigest {
 public:
  // `dataset`: its number in a mixture; 0 for a single data set.
  SampleDigest(uint64_t dataset, uint64_t pass);

  // Samples added from here on are of this data set and pass.
  void enter(uint64_t dataset, uint64_t pass);
  void add(uint64_t position, uint64_t sample);
  uint64_t value() const;

 private:
  uint64_t pass_key_ = 0;
  uint64_t hash_;
  uint64_t count_ = 0;
};

// The digest of the samples delivered for the positions from `begin` on of an epoch. `order`: the
// epoch's order.
uint64_t delivered_digest(const EpochOrder& order, Epoch epoch, uint64_t begin,
                          std::span<const uint64_t> samples);

// The digest that the plan promises for a slot. `order`: the order of plan.epoch.
uint64_t planned_digest(const EpochOrder& order, const StepPlan& plan, uint32_t slot,
                        uint32_t slots);

}  // namespace lockstep
