// What the journal proves about every sample of a run.
//
// The order of the samples is a function of the seed; which generation did which step, and with
// which slots, is in the ledger. What the loaders really delivered is in the step records, as one
// digest a slot (data/order/digest.h). The audit computes each digest again and compares: it checks
// what was done, not what was planned.
//
//   surviving rows of the ledger ──▶ their records ──▶ digests ──▶ compared with seed and plan
//
// A planned sample whose delivery is not proven counts as lost; one that was delivered beyond the
// plan counts as repeated. What a stopped run has not reached is neither. Samples that were left
// out by policy (train.on_bad_samples) are a class of their own, and so are steps that the loss
// scaler skipped. Where records were folded (fold.h), the hash that stands for them is computed
// again from the seed.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "coordinator/audit/delivery.h"
#include "coordinator/audit/run_order.h"
#include "coordinator/journal/journal.h"
#include "coordinator/state/check_state.h"

namespace lockstep::coordinator {

struct AuditedSlot {
  uint32_t slot = 0;
  MemberId member = 0;  // that computed it; 0: not known
  uint32_t rank = 0;
  data::PositionRange positions;  // in the epoch
  uint64_t digest = 0;            // as recorded; 0 if kMissing
  uint64_t delivered = 0;         // samples, as recorded
  Delivery delivery = Delivery::kMissing;
};

struct AuditedStep {
  Step step = 0;  // 0-based
  Epoch epoch = 0;
  Generation generation = 0;
  bool skipped = false;  // by the loss scaler: consumed, and nothing applied
  double loss = 0;
  std::vector<AuditedSlot> slots;  // without the empty ones
};

struct AuditFault {
  Step step = 0;
  Epoch epoch = 0;
  Generation generation = 0;
  AuditedSlot slot;
};

struct AuditedEpoch {
  Epoch epoch = 0;
  uint64_t steps = 0;
  uint64_t all_steps = 0;
  uint64_t samples = 0;
  uint64_t all_samples = 0;
  bool is_whole() const { return steps == all_steps; }
};

// Slots [begin, end) of a step of the surviving lineage that were left out by policy.
struct LeftOut {
  Step step = 0;
  Epoch epoch = 0;
  Generation generation = 0;  // that did the step without them
  SlotRun slots;
  data::PositionRange positions;  // in the epoch
  std::string reason;
};

// Steps [from, to) that a generation reported and that did not survive.
struct UndoneSteps {
  Generation generation = 0;
  Step from = 0;
  Step to = 0;
};

struct AuditReport {
  RunOrder order;
  std::vector<LedgerRow> rows;          // that survive
  std::vector<SlotMapEntry> slot_maps;  // of `rows`
  std::vector<AuditedEpoch> epochs;
  std::vector<UndoneSteps> undone;
  std::vector<Step> skipped;  // by the loss scaler
  uint64_t skipped_samples = 0;
  std::vector<LeftOut> left_out;
  uint64_t left_out_samples = 0;
  // The first step, from 1, that a worker which was put out later may have made wrong
  // (train.on_corruption: continue).
  std::optional<Step> tainted;
  std::vector<Place> expelled;     // what computed there was wrong
  std::vector<AuditFault> faults;  // the first kMostFaults
  uint64_t fault_count = 0;
  Step steps = 0;        // of the surviving lineage
  uint64_t samples = 0;  // that they have by plan; left_out_samples are some of them
  uint64_t lost = 0;
  uint64_t repeated = 0;

  bool is_clean() const { return fault_count == 0; }
  uint64_t applied() const { return samples - left_out_samples - lost; }
};

inline constexpr size_t kMostFaults = 10'000;

// Checks every step of the surviving lineage. `on_step` gets each in order; may be empty.
Result<AuditReport> audit(Journal& journal,
                          const std::function<void(const AuditedStep&)>& on_step = {});

}  // namespace lockstep::coordinator
