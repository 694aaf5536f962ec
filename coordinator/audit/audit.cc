#include "coordinator/audit/audit.h"

#include <algorithm>
#include <map>
#include <optional>

#include "coordinator/audit/checked_fold.h"
#include "coordinator/state/corruption.h"
#include "coordinator/state/skips.h"

namespace lockstep::coordinator {
namespace {

constexpr Step kStepsAtOnce = 4096;  // records of so many are in memory

class Auditor {
 public:
  Auditor(Journal& journal, JournalContents contents, RunOrder order,
          const std::function<void(const AuditedStep&)>& on_step)
      : journal_(journal), contents_(std::move(contents)), on_step_(on_step), plan_(order) {
    report_.order = std::move(order);
  }

  Result<AuditReport> run();

 private:
  // Facts about one step of the present row.
  struct Known {
    const RecordedStep* recorded = nullptr;
    const StepEntry* complete = nullptr;
    const CheckedFold* fold = nullptr;
  };

  Status check_row(const LedgerRow& row, Step end);
  Status begin_row(const LedgerRow& row);
  void note_evaluations();
  Status check_steps(const LedgerRow& row, Step from, Step to);
  Status find_undone(const LedgerRow& row);
  const CheckedFold* fold_of(Generation generation, Step step);
  void check_step(Step step, Generation generation, const Known& known, bool is_second);
  AuditedSlot check_slot(Step step, const StepPlan& plan, uint32_t slot, const Known& known);
  SlotDelivery judge(Step step, const StepPlan& plan, uint32_t slot, const Known& known);
  void count(const AuditedStep& audited, const StepPlan& plan, bool is_second);
  void count_left_out(const AuditedStep& audited, const StepPlan& plan);
  std::string reason_of(const AuditedStep& audited, uint32_t slot) const;
  void fault(const AuditedStep& audited, const AuditedSlot& slot);

  Journal& journal_;
  const JournalContents contents_;
  const std::function<void(const AuditedStep&)>& on_step_;
  OrderedPlan plan_;
  AuditReport report_;
  // State of the present row.
  std::vector<MemberId> member_of_slot_;
  std::vector<uint32_t> rank_of_slot_;
  SkipSet skips_;
  std::optional<CheckedFold> fold_;  // the last one that was met
};

Result<AuditReport> Auditor::run() {
  const CheckHistory checks = check_history(contents_);
  report_.lineage_id = contents_.mark.lineage_id;
  for (const IdentityEntry& entry : contents_.identity)
    if (entry.key == kDrawnKey) report_.drawn_by = entry.value;
  report_.tainted = checks.tainted;
  report_.expelled.assign(checks.expelled.begin(), checks.expelled.end());
  Step complete = 0;  // an open row ends where not every rank has reported
  LOCKSTEP_RETURN_IF_ERROR(journal_.visit_steps(
      0, kNoStep, [&](const StepEntry& entry) { complete = std::max(complete, entry.step + 1); }));
  for (const LedgerRow& row : contents_.ledger) {
    LOCKSTEP_RETURN_IF_ERROR(find_undone(row));
    if (row.rolled_back) continue;
    report_.rows.push_back(row);
    LOCKSTEP_RETURN_IF_ERROR(
        check_row(row, row.last ? row.last->step : std::max(complete, row.first.step)));
  }
  note_evaluations();
  return std::move(report_);
}

void Auditor::note_evaluations() {
  for (const EvalEntry& eval : contents_.evals) {
    if (eval.step <= report_.steps) report_.evaluations.push_back(eval.step);
  }
  const std::vector<Step>& made = report_.evaluations;
  if (made.empty()) return;
  const uint64_t epoch = steps_per_epoch(report_.order.shape);
  for (Step end = (made.front() / epoch + 1) * epoch; end < report_.steps; end += epoch) {
    if (!std::binary_search(made.begin(), made.end(), end)) report_.not_evaluated.push_back(end);
  }
}

Status Auditor::begin_row(const LedgerRow& row) {
  const uint32_t slots = report_.order.shape.slots;
  LOCKSTEP_ASSIGN_OR_RETURN(SlotMapEntry map, journal_.slot_map(row.generation));
  member_of_slot_.assign(slots, 0);
  rank_of_slot_.assign(slots, 0);
  for (uint32_t rank = 0; rank < map.runs.size(); ++rank) {
    for (uint32_t slot = map.runs[rank].begin; slot < map.runs[rank].end && slot < slots; ++slot) {
      member_of_slot_[slot] = map.members[rank];
      rank_of_slot_[slot] = rank;
    }
  }
  report_.slot_maps.push_back(std::move(map));
  fold_.reset();
  return Status::ok();
}

Status Auditor::check_row(const LedgerRow& row, Step end) {
  LOCKSTEP_RETURN_IF_ERROR(begin_row(row));
  // The rows of a lineage follow each other. No generation did the steps between two rows.
  skips_ = {};
  for (Step step = report_.steps; step < row.first.step; ++step) check_step(step, 0, {}, false);
  skips_ = skips_in(contents_.skips, row.generation);
  for (Step from = row.first.step; from < end; from += kStepsAtOnce) {
    LOCKSTEP_RETURN_IF_ERROR(check_steps(row, from, std::min(end, from + kStepsAtOnce)));
  }
  return Status::ok();
}

Status Auditor::check_steps(const LedgerRow& row, Step from, Step to) {
  LOCKSTEP_ASSIGN_OR_RETURN(const RecordedSteps recorded,
                            recorded_steps(journal_, row.generation, from, to));
  std::map<Step, StepEntry> complete;
  LOCKSTEP_RETURN_IF_ERROR(journal_.visit_steps(from, to, [&](const StepEntry& entry) {
    if (entry.generation == row.generation) complete[entry.step] = entry;
  }));
  for (Step step = from; step < to; ++step) {
    Known known;
    if (const auto it = recorded.steps.find(step); it != recorded.steps.end()) {
      known.recorded = &it->second;
    }
    if (const auto it = complete.find(step); it != complete.end()) known.complete = &it->second;
    known.fold = fold_of(row.generation, step);
    check_step(step, row.generation, known, step < report_.steps);
  }
  return Status::ok();
}

// Finds the steps that a generation reported beyond its row: a later generation did them again.
Status Auditor::find_undone(const LedgerRow& row) {
  if (!row.last) return Status::ok();
  const Step end = row.last->step;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto batches, journal_.batches(row.generation, end, kNoStep));
  Step from = kNoStep;
  Step to = end;
  for (const RecordsEntry& batch : batches) {
    from = std::min(from, std::max(end, batch.records.front().step()));
    to = std::max(to, batch.records.back().step() + 1);
  }
  for (const FoldEntry& fold : contents_.folds) {
    if (fold.generation != row.generation || fold.last <= end) continue;
    from = std::min(from, std::max(end, fold.first));
    to = std::max(to, fold.last);
  }
  if (to > end) report_.undone.push_back({row.generation, from, to});
  return Status::ok();
}

const CheckedFold* Auditor::fold_of(Generation generation, Step step) {
  if (fold_ && fold_->holds(generation, step)) return &*fold_;
  const auto it =
      std::find_if(contents_.folds.begin(), contents_.folds.end(), [&](const FoldEntry& fold) {
        return fold.generation == generation && fold.first <= step && step < fold.last;
      });
  if (it == contents_.folds.end()) return nullptr;
  return &fold_.emplace(*it, skips_, plan_);
}

SlotDelivery Auditor::judge(Step step, const StepPlan& plan, uint32_t slot, const Known& known) {
  if (skips_.contains(step, slot)) return judge_left_out(known.recorded, slot);
  const uint64_t samples = plan_.positions(plan, slot).size();
  if (known.fold == nullptr) {
    if (known.recorded == nullptr) return {};
    return judge_slot(known.recorded, slot, plan_.digest(plan, slot), samples);
  }
  const uint64_t planned = known.fold->digest(step, slot);
  // A report that came after the fold may still prove something else.
  const SlotDelivery late = judge_slot(known.recorded, slot, planned, samples);
  if (late.delivery == Delivery::kOther) return late;
  if (known.fold->is_right()) return {Delivery::kRight, planned, samples};
  return {Delivery::kBrokenFold, 0, 0};
}

AuditedSlot Auditor::check_slot(Step step, const StepPlan& plan, uint32_t slot,
                                const Known& known) {
  const SlotDelivery judged = judge(step, plan, slot, known);
  AuditedSlot audited;
  audited.slot = slot;
  audited.member = member_of_slot_[slot];
  audited.rank = rank_of_slot_[slot];
  audited.positions = plan_.positions(plan, slot);
  audited.digest = judged.digest;
  audited.delivered = judged.samples;
  audited.delivery = judged.delivery;
  return audited;
}

void Auditor::check_step(Step step, Generation generation, const Known& known, bool is_second) {
  const StepPlan plan = plan_.step(step);
  AuditedStep audited;
  audited.step = step;
  audited.epoch = plan.epoch;
  audited.generation = generation;
  if (known.recorded != nullptr) {
    audited.skipped = known.recorded->skipped;
    audited.loss = known.recorded->loss;
  } else if (known.complete != nullptr) {
    audited.skipped = known.complete->skipped;
    audited.loss = known.complete->loss;
  }
  for (uint32_t slot = 0; slot < report_.order.shape.slots; ++slot) {
    if (plan_.positions(plan, slot).size() == 0) continue;
    audited.slots.push_back(check_slot(step, plan, slot, known));
    if (is_second) audited.slots.back().delivery = Delivery::kTwice;
    fault(audited, audited.slots.back());
  }
  count(audited, plan, is_second);
  if (on_step_) on_step_(audited);
}

void Auditor::count(const AuditedStep& audited, const StepPlan& plan, bool is_second) {
  if (is_second) return;
  if (report_.epochs.empty() || report_.epochs.back().epoch != plan.epoch) {
    report_.epochs.push_back(
        {plan.epoch, 0, steps_per_epoch(report_.order.shape), 0, report_.order.shape.samples});
  }
  const uint64_t samples = plan.last_of_batch ? plan.samples : 0;
  ++report_.epochs.back().steps;
  report_.epochs.back().samples += samples;
  report_.steps = audited.step + 1;
  report_.samples += samples;
  count_left_out(audited, plan);
  if (!audited.skipped) return;
  report_.skipped.push_back(audited.step);
  report_.skipped_samples += plan.samples;
}

std::string Auditor::reason_of(const AuditedStep& audited, uint32_t slot) const {
  for (const SkipEntry& skip : contents_.skips) {
    const bool holds = skip.step == audited.step && holds_in(skip, audited.generation) &&
                       skip.slots.begin <= slot && slot < skip.slots.end;
    if (holds) return skip.reason;
  }
  return {};
}

// Slots that follow each other and have one reason are one entry.
void Auditor::count_left_out(const AuditedStep& audited, const StepPlan& plan) {
  const AuditedSlot* before = nullptr;
  for (const AuditedSlot& slot : audited.slots) {
    if (slot.delivery != Delivery::kLeftOut) {
      before = nullptr;
      continue;
    }
    if (plan.last_of_batch) report_.left_out_samples += slot.positions.size();
    const std::string reason = reason_of(audited, slot.slot);
    if (before == nullptr || report_.left_out.back().reason != reason) {
      report_.left_out.push_back({audited.step,
                                  audited.epoch,
                                  audited.generation,
                                  {slot.slot, slot.slot},
                                  slot.positions,
                                  reason});
    }
    report_.left_out.back().slots.end = slot.slot + 1;
    report_.left_out.back().positions.end = slot.positions.end;
    before = &slot;
  }
}

void Auditor::fault(const AuditedStep& audited, const AuditedSlot& slot) {
  switch (slot.delivery) {
    case Delivery::kRight:
    case Delivery::kLeftOut:
      return;
    case Delivery::kMissing:
    case Delivery::kBrokenFold:
      report_.lost += slot.positions.size();
      break;
    case Delivery::kOther:  // what came belongs to another place
      report_.lost += slot.positions.size();
      report_.repeated += slot.delivered;
      break;
    case Delivery::kTwice:
      report_.repeated += slot.positions.size();
      break;
    case Delivery::kUnwanted:
      report_.repeated += slot.delivered;
      break;
  }
  if (++report_.fault_count > kMostFaults) return;
  report_.faults.push_back({audited.step, audited.epoch, audited.generation, slot});
}

}  // namespace

Result<AuditReport> audit(Journal& journal,
                          const std::function<void(const AuditedStep&)>& on_step) {
  LOCKSTEP_ASSIGN_OR_RETURN(JournalContents contents, journal.load());
  LOCKSTEP_ASSIGN_OR_RETURN(RunOrder order, order_of(contents.identity));
  return Auditor(journal, std::move(contents), std::move(order), on_step).run();
}

}  // namespace lockstep::coordinator
