#include "coordinator/audit/delivery.h"

#include <algorithm>

namespace lockstep::coordinator {
namespace {

bool by_slot(const wire::SlotDigest& a, const wire::SlotDigest& b) {
  return a.slot() < b.slot();
}

auto reports_of(const RecordedStep& recorded, uint32_t slot) {
  wire::SlotDigest wanted;
  wanted.set_slot(slot);
  return std::equal_range(recorded.slots.begin(), recorded.slots.end(), wanted, by_slot);
}

}  // namespace

Result<RecordedSteps> recorded_steps(Journal& journal, Generation generation, Step from, Step to) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto batches, journal.batches(generation, from, to));
  RecordedSteps found;
  for (const RecordsEntry& batch : batches) {
    found.records += batch.records.size();
    for (const wire::StepRecord& record : batch.records) {
      if (record.step() < from || record.step() >= to) continue;
      RecordedStep& recorded = found.steps[record.step()];
      recorded.skipped = record.skipped();
      recorded.loss = record.loss();
      recorded.slots.insert(recorded.slots.end(), record.slots().begin(), record.slots().end());
    }
  }
  for (auto& [step, recorded] : found.steps) {
    std::stable_sort(recorded.slots.begin(), recorded.slots.end(), by_slot);
  }
  return found;
}

SlotDelivery judge_slot(const RecordedStep* recorded, uint32_t slot, uint64_t planned_digest,
                        uint64_t samples) {
  SlotDelivery judged;
  if (recorded == nullptr) return judged;
  const auto [begin, end] = reports_of(*recorded, slot);
  // One report that differs is enough.
  for (auto it = begin; it != end && judged.delivery != Delivery::kOther; ++it) {
    const bool is_right = it->digest() == planned_digest && it->samples() == samples;
    judged = {is_right ? Delivery::kRight : Delivery::kOther, it->digest(), it->samples()};
  }
  return judged;
}

SlotDelivery judge_left_out(const RecordedStep* recorded, uint32_t slot) {
  if (recorded == nullptr) return {Delivery::kLeftOut, 0, 0};
  const auto [begin, end] = reports_of(*recorded, slot);
  if (begin == end) return {Delivery::kLeftOut, 0, 0};
  return {Delivery::kUnwanted, begin->digest(), begin->samples()};
}

}  // namespace lockstep::coordinator
