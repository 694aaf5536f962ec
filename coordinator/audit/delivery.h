// What the records of a generation say that the loaders delivered, and whether it was what the plan
// says. The audit and the folding of records judge by the same rule.
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/control.pb.h"
#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

enum class Delivery : uint8_t {
  kRight,       // the digest is that of the planned samples
  kLeftOut,     // by policy, and nothing was delivered
  kOther,       // other samples were delivered, or in another order
  kMissing,     // nobody has recorded what was delivered
  kTwice,       // two generations of the surviving lineage did this step
  kUnwanted,    // delivered, though it was to be left out
  kBrokenFold,  // the hash that stands for its record is not that of the plan
};

// What the ranks of one generation have recorded of one step.
struct RecordedStep {
  bool skipped = false;  // by the loss scaler
  double loss = 0;
  std::vector<wire::SlotDigest> slots;  // of all reports that have any, by slot
};

struct RecordedSteps {
  std::map<Step, RecordedStep> steps;
  uint64_t records = 0;  // that were read
};
// Of the steps [from, to) of `generation`, as far as they were not folded.
Result<RecordedSteps> recorded_steps(Journal& journal, Generation generation, Step from, Step to);

struct SlotDelivery {
  Delivery delivery = Delivery::kMissing;
  uint64_t digest = 0;   // as recorded; 0 if kMissing
  uint64_t samples = 0;  // likewise
};

// Of a slot with `samples` > 0 by plan. `recorded` may be null.
SlotDelivery judge_slot(const RecordedStep* recorded, uint32_t slot, uint64_t planned_digest,
                        uint64_t samples);
// Of a slot that the generation was to leave out.
SlotDelivery judge_left_out(const RecordedStep* recorded, uint32_t slot);

// One number for the digests of many slots, in the order of steps and slots.
class FoldDigest {
 public:
  void add(Step step, uint32_t slot, uint64_t digest, uint64_t samples);
  uint64_t value() const { return hash_; }
  uint64_t samples() const { return samples_; }

 private:
  uint64_t hash_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace lockstep::coordinator
