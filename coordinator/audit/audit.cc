#include "coordinator/audit/audit.h"

#include <algorithm>
#include <map>
#include <optional>

#include "coordinator/identity.h"
#include "data/order/digest.h"

namespace lockstep::coordinator {
namespace {

constexpr Step kStepsAtOnce = 4096;  // records of so many are in memory

bool by_slot(const wire::SlotDigest& a, const wire::SlotDigest& b) {
  return a.slot() < b.slot();
}

class Auditor {
 public:
  Auditor(Journal& journal, const std::function<void(const AuditedStep&)>& on_step)
      : journal_(journal), on_step_(on_step) {}

  Result<AuditReport> run();

 private:
  // What the ranks of one generation have recorded of one step.
  struct Recorded {
    bool skipped = false;
    double loss = 0;
    std::vector<wire::SlotDigest> slots;  // of all reports that have any, by slot
  };

  Status check_row(const LedgerRow& row, Step end);
  Result<std::map<Step, Recorded>> records(const LedgerRow& row, Step from, Step to);
  Status find_undone(const LedgerRow& row);
  void check_step(Step step, Generation generation, const Recorded* recorded, bool is_second);
  AuditedSlot check_slot(const data::StepPlan& plan, uint32_t slot, const Recorded* recorded);
  void count(const AuditedStep& audited, const data::StepPlan& plan, bool is_second);
  void fault(const AuditedStep& audited, const AuditedSlot& slot);
  const data::EpochOrder& order(Epoch epoch);

  Journal& journal_;
  const std::function<void(const AuditedStep&)>& on_step_;
  AuditReport report_;
  std::vector<MemberId> member_of_slot_;  // in the present row
  std::vector<uint32_t> rank_of_slot_;
  std::optional<data::EpochOrder> order_;
  Epoch order_epoch_ = 0;
};

Result<AuditReport> Auditor::run() {
  LOCKSTEP_ASSIGN_OR_RETURN(const JournalContents contents, journal_.load());
  LOCKSTEP_ASSIGN_OR_RETURN(report_.order, order_of(contents.identity));
  Step complete = 0;  // an open row ends where not every rank has reported
  LOCKSTEP_RETURN_IF_ERROR(journal_.visit_steps(
      0, kNoStep, [&](const StepEntry& entry) { complete = std::max(complete, entry.step + 1); }));
  for (const LedgerRow& row : contents.ledger) {
    LOCKSTEP_RETURN_IF_ERROR(find_undone(row));
    if (row.rolled_back) continue;
    report_.rows.push_back(row);
    LOCKSTEP_RETURN_IF_ERROR(
        check_row(row, row.last ? row.last->step : std::max(complete, row.first.step)));
  }
  return std::move(report_);
}

Status Auditor::check_row(const LedgerRow& row, Step end) {
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
  // The rows of a lineage follow each other; what lies between two was done by nobody.
  for (Step step = report_.steps; step < row.first.step; ++step)
    check_step(step, 0, nullptr, false);
  for (Step from = row.first.step; from < end; from += kStepsAtOnce) {
    const Step to = std::min(end, from + kStepsAtOnce);
    LOCKSTEP_ASSIGN_OR_RETURN(const auto recorded, records(row, from, to));
    for (Step step = from; step < to; ++step) {
      const auto it = recorded.find(step);
      check_step(step, row.generation, it == recorded.end() ? nullptr : &it->second,
                 step < report_.steps);
    }
  }
  return Status::ok();
}

Result<std::map<Step, Auditor::Recorded>> Auditor::records(const LedgerRow& row, Step from,
                                                           Step to) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto batches, journal_.batches(row.generation, from, to));
  std::map<Step, Recorded> found;
  for (const RecordsEntry& batch : batches) {
    for (const wire::StepRecord& record : batch.records) {
      if (record.step() < from || record.step() >= to) continue;
      Recorded& recorded = found[record.step()];
      recorded.skipped = record.skipped();
      recorded.loss = record.loss();
      recorded.slots.insert(recorded.slots.end(), record.slots().begin(), record.slots().end());
    }
  }
  for (auto& [step, recorded] : found) {
    std::stable_sort(recorded.slots.begin(), recorded.slots.end(), by_slot);
  }
  return found;
}

// What a generation reported beyond where its row ends was done again by a later one.
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
  if (to > end) report_.undone.push_back({row.generation, from, to});
  return Status::ok();
}

const data::EpochOrder& Auditor::order(Epoch epoch) {
  if (!order_ || order_epoch_ != epoch) {
    order_.emplace(report_.order.seed, epoch, report_.order.fingerprint,
                   report_.order.shape.samples);
    order_epoch_ = epoch;
  }
  return *order_;
}

AuditedSlot Auditor::check_slot(const data::StepPlan& plan, uint32_t slot,
                                const Recorded* recorded) {
  const uint32_t slots = report_.order.shape.slots;
  AuditedSlot audited;
  audited.slot = slot;
  audited.member = member_of_slot_[slot];
  audited.rank = rank_of_slot_[slot];
  audited.positions = data::slot_positions(plan, slot, slots);
  if (recorded == nullptr) return audited;
  const uint64_t planned = data::planned_digest(order(plan.epoch), plan, slot, slots);
  wire::SlotDigest wanted;
  wanted.set_slot(slot);
  const auto [begin, end] =
      std::equal_range(recorded->slots.begin(), recorded->slots.end(), wanted, by_slot);
  // One report that differs is enough.
  for (auto it = begin; it != end && audited.delivery != Delivery::kOther; ++it) {
    const bool is_right = it->digest() == planned && it->samples() == audited.positions.size();
    audited.delivery = is_right ? Delivery::kRight : Delivery::kOther;
    audited.digest = it->digest();
    audited.delivered = it->samples();
  }
  return audited;
}

void Auditor::check_step(Step step, Generation generation, const Recorded* recorded,
                         bool is_second) {
  const data::StepPlan plan = data::plan_step(report_.order.shape, step);
  AuditedStep audited;
  audited.step = step;
  audited.epoch = plan.epoch;
  audited.generation = generation;
  if (recorded != nullptr) {
    audited.skipped = recorded->skipped;
    audited.loss = recorded->loss;
  }
  const uint32_t slots = report_.order.shape.slots;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (data::slot_positions(plan, slot, slots).size() == 0) continue;
    audited.slots.push_back(check_slot(plan, slot, recorded));
    if (is_second) audited.slots.back().delivery = Delivery::kTwice;
    fault(audited, audited.slots.back());
  }
  count(audited, plan, is_second);
  if (on_step_) on_step_(audited);
}

void Auditor::count(const AuditedStep& audited, const data::StepPlan& plan, bool is_second) {
  if (is_second) return;
  if (report_.epochs.empty() || report_.epochs.back().epoch != plan.epoch) {
    report_.epochs.push_back({plan.epoch, 0, data::steps_per_epoch(report_.order.shape), 0,
                              report_.order.shape.samples});
  }
  ++report_.epochs.back().steps;
  report_.epochs.back().samples += plan.samples;
  report_.steps = audited.step + 1;
  report_.samples += plan.samples;
  if (!audited.skipped) return;
  report_.skipped.push_back(audited.step);
  report_.skipped_samples += plan.samples;
}

void Auditor::fault(const AuditedStep& audited, const AuditedSlot& slot) {
  switch (slot.delivery) {
    case Delivery::kRight:
      return;
    case Delivery::kMissing:
      report_.lost += slot.positions.size();
      break;
    case Delivery::kOther:  // what came belongs to another place
      report_.lost += slot.positions.size();
      report_.repeated += slot.delivered;
      break;
    case Delivery::kTwice:
      report_.repeated += slot.positions.size();
      break;
  }
  if (++report_.fault_count > kMostFaults) return;
  report_.faults.push_back({audited.step, audited.epoch, audited.generation, slot});
}

}  // namespace

Result<RunOrder> order_of(const std::vector<IdentityEntry>& identity) {
  if (identity.empty()) {
    return Status(Code::kUsage, "no step was ever begun: there is nothing to tell of this run");
  }
  RunOrder order;
  uint64_t version = 0;
  uint64_t slots = 0;
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSeedKey, &order.seed));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kOrderVersionKey, &version));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSamplesKey, &order.shape.samples));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kGlobalBatchKey, &order.shape.global_batch));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSlotsKey, &slots));
  order.shape.slots = static_cast<uint32_t>(slots);
  for (const IdentityEntry& entry : identity) {
    if (entry.key == kFingerprintKey) order.fingerprint = entry.value;
  }
  if (version != data::kOrderVersion) {
    return Status(Code::kConfig, "the samples were put in order by version " +
                                     std::to_string(version) + ", this program knows version " +
                                     std::to_string(data::kOrderVersion) +
                                     ": use the lockstep that began the run");
  }
  if (order.shape.samples == 0 || order.shape.global_batch == 0 || slots == 0) {
    return Status(Code::kBadData, "the journal says that the run has no samples or no slots");
  }
  return order;
}

Result<AuditReport> audit(Journal& journal,
                          const std::function<void(const AuditedStep&)>& on_step) {
  return Auditor(journal, on_step).run();
}

}  // namespace lockstep::coordinator
