// Tells what the loaders delivered, from the records of a generation, and whether it matches the
// plan. The audit and the folding of records use the same rule.
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
  kRight,       // the digest matches the planned samples
  kLeftOut,     // left out by policy, and nothing was delivered
  kOther,       // other samples were delivered, or in another order
  kMissing,     // no record says what was delivered
  kTwice,       // two generations of the surviving lineage did this step
  kUnwanted,    // delivered, although the policy left it out
  kBrokenFold,  // the hash of its fold does not match the plan
};

// The records of one step from all ranks of one generation.
struct RecordedStep {
  bool skipped = false;  // by the loss scaler
  double loss = 0;
  std::vector<wire::SlotDigest> slots;  // of all reports that have any, by slot
};

struct RecordedSteps {
  std::map<Step, RecordedStep> steps;
  uint64_t records = 0;  // how many were read
};
// The records of steps [from, to) of `generation` that are not folded.
Result<RecordedSteps> recorded_steps(Journal& journal, Generation generation, Step from, Step to);

struct SlotDelivery {
  Delivery delivery = Delivery::kMissing;
  uint64_t digest = 0;   // as recorded; 0 if kMissing
  uint64_t samples = 0;  // as recorded; 0 if kMissing
};

// Judges a slot with `samples` > 0 by plan. `recorded` may be null.
SlotDelivery judge_slot(const RecordedStep* recorded, uint32_t slot, uint64_t planned_digest,
                        uint64_t samples);
// Judges a slot that the generation had to leave out.
SlotDelivery judge_left_out(const RecordedStep* recorded, uint32_t slot);

}  // namespace lockstep::coordinator
