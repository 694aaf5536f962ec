#include <vector>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {

using coordinator::LedgerRow;

void LedgerView::add(const Disk::Entries& entries) {
  at_start_.clear();
  for (const coordinator::JournalEntry& entry : entries) {
    if (const auto* e = std::get_if<coordinator::LedgerEntry>(&entry))
      rows_[e->row.generation] = e->row;
    if (const auto* e = std::get_if<coordinator::StepEntry>(&entry))
      steps_[{e->generation, e->step}] = *e;
    if (const auto* e = std::get_if<coordinator::CheckpointEntry>(&entry))
      checkpoints_[e->name] = *e;
    if (const auto* e = std::get_if<coordinator::EvalEntry>(&entry)) evals_[e->step] = *e;
    if (const auto* e = std::get_if<coordinator::RollbackEntry>(&entry)) roll_back(*e);
    const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry);
    if (generation != nullptr && generation->state == coordinator::GenerationState::kStarted)
      at_start_[generation->generation] = {evals_, checkpoints_};
    const auto* records = std::get_if<coordinator::RecordsEntry>(&entry);
    if (records == nullptr) continue;
    batches_.emplace(records->member, records->batch);
    for (const wire::StepRecord& record : records->records) {
      if (record.slots_size() == 0) continue;
      digests_.try_emplace({records->generation, record.step()}, record);
    }
  }
}

void LedgerView::roll_back(const coordinator::RollbackEntry& entry) {
  std::vector<LedgerRow> rows;
  for (const auto& [generation, row] : rows_) rows.push_back(row);
  for (const LedgerRow& row : coordinator::cut_ledger(rows, entry.to)) rows_[row.generation] = row;
  for (auto& [name, checkpoint] : checkpoints_)
    if (checkpoint.step > entry.to.step)
      checkpoint.state = coordinator::CheckpointState::kRolledBack;
  evals_.erase(evals_.upper_bound(entry.to.step), evals_.end());
}

const LedgerRow* LedgerView::row_of(Step step) const {
  for (const auto& [generation, row] : rows_)
    if (row.covers(step)) return &row;
  return nullptr;
}

bool LedgerView::covers(Generation generation, Step step) const {
  const auto found = rows_.find(generation);
  return found != rows_.end() && found->second.covers(step);
}

const coordinator::StepEntry* LedgerView::step(Generation generation, Step step) const {
  const auto found = steps_.find({generation, step});
  return found == steps_.end() ? nullptr : &found->second;
}

Step LedgerView::completed() const {
  for (Step step = 0;; ++step) {
    const LedgerRow* row = row_of(step);
    if (row == nullptr || this->step(row->generation, step) == nullptr) return step;
  }
}

const wire::StepRecord* LedgerView::digests(Generation generation, Step step) const {
  const auto found = digests_.find({generation, step});
  return found == digests_.end() ? nullptr : &found->second;
}

}  // namespace lockstep::sim
