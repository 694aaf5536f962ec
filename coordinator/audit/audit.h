// Checks what the journal proves about every sample of a run.
//
// The seed fixes the order of the samples. The ledger says which generation did which step, with
// which slots. The step records say what the loaders really delivered, as one digest per slot
// (comm/run/plan/digest.h). The audit computes each digest again and compares it, so it checks the
// work, not the plan.
//
//   surviving rows of the ledger ──▶ their records ──▶ digests ──▶ compared with seed and plan
//
// How samples count:
//   lost      planned, and no record proves the delivery
//   repeated  delivered beyond the plan
//   left out  by policy (train.on_bad_samples)
//   neither   in steps that a stopped run has not reached
// Steps that the loss scaler skipped are listed separately. Where the coordinator folded records
// (fold.h), the audit computes their hash again from the seed.
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

// In the identity of a script that draws samples by weights, and of no other one
// (worker/python/lockstep/_ahead.py).
inline constexpr char kDrawnKey[] = "script.batches.weights";

struct AuditedSlot {
  uint32_t slot = 0;
  MemberId member = 0;  // which computed it; 0: unknown
  uint32_t rank = 0;
  PositionRange positions;  // in the epoch
  uint64_t digest = 0;      // as recorded; 0 if kMissing
  uint64_t delivered = 0;   // samples, as recorded
  Delivery delivery = Delivery::kMissing;
};

struct AuditedStep {
  Step step = 0;  // 0-based
  Epoch epoch = 0;
  Generation generation = 0;
  bool skipped = false;  // the loss scaler consumed the step and applied nothing
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

// Slots [begin, end) of a step of the surviving lineage that the policy left out.
struct LeftOut {
  Step step = 0;
  Epoch epoch = 0;
  Generation generation = 0;  // which did the step without them
  SlotRun slots;
  PositionRange positions;  // in the epoch
  std::string reason;
};

// Steps [from, to) that a generation reported, and that a rollback undid.
struct UndoneSteps {
  Generation generation = 0;
  Step from = 0;
  Step to = 0;
};

struct AuditReport {
  std::string lineage_id;  // of the journal
  RunOrder order;
  // Not empty: a script's weights, by their number and hash, decide which sample stands at a
  // position. The ledger and the digests are of positions all the same, by the samples of the
  // order.
  std::string drawn_by;
  std::vector<LedgerRow> rows;          // the surviving ones
  std::vector<SlotMapEntry> slot_maps;  // of `rows`
  std::vector<AuditedEpoch> epochs;
  std::vector<UndoneSteps> undone;
  std::vector<Step> skipped;  // by the loss scaler
  uint64_t skipped_samples = 0;
  std::vector<LeftOut> left_out;
  uint64_t left_out_samples = 0;
  // The first step, counted from 1, that a worker may have made wrong before its expulsion
  // (train.on_corruption: continue).
  std::optional<Step> tainted;
  std::vector<Place> expelled;     // the workers there computed wrong
  std::vector<AuditFault> faults;  // the first kMostFaults
  uint64_t fault_count = 0;
  // Evaluations of the surviving lineage, by steps applied before them; and the ends of epochs
  // after the first of these that have none, although the run went on. They are no faults: they use
  // no sample.
  std::vector<Step> evaluations;
  std::vector<Step> not_evaluated;
  Step steps = 0;        // of the surviving lineage
  uint64_t samples = 0;  // of these steps by plan, including left_out_samples
  uint64_t lost = 0;
  uint64_t repeated = 0;

  bool is_clean() const { return fault_count == 0; }
  uint64_t applied() const { return samples - left_out_samples - lost; }
};

inline constexpr size_t kMostFaults = 10'000;

// Checks every step of the surviving lineage. Calls `on_step` for each in order; may be empty.
Result<AuditReport> audit(Journal& journal,
                          const std::function<void(const AuditedStep&)>& on_step = {});

}  // namespace lockstep::coordinator
