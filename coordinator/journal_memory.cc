#include "coordinator/journal_memory.h"

#include <algorithm>

namespace lockstep::coordinator {

Status MemoryJournal::commit(std::span<const JournalEntry> entries, int64_t) {
  if (!error_.is_ok()) return error_;
  for (const JournalEntry& entry : entries) apply(entry);
  ++commits_;
  return Status::ok();
}

void MemoryJournal::apply(const JournalEntry& entry) {
  if (const auto* e = std::get_if<IdentityEntry>(&entry)) identity_[e->key] = e->value;
  if (const auto* e = std::get_if<TermEntry>(&entry)) last_term_ = std::max(last_term_, e->term);
  if (const auto* e = std::get_if<MemberEntry>(&entry)) {
    last_member_ = std::max(last_member_, e->member);
  }
  if (const auto* e = std::get_if<GenerationEntry>(&entry)) generations_[e->generation] = e->state;
  if (const auto* e = std::get_if<LedgerEntry>(&entry)) ledger_[e->row.generation] = e->row;
  if (const auto* e = std::get_if<RecordsEntry>(&entry)) batches_.push_back(*e);
  if (const auto* e = std::get_if<StepEntry>(&entry)) steps_[{e->generation, e->step}] = *e;
  if (const auto* e = std::get_if<EvalEntry>(&entry)) evals_[e->step] = *e;
  if (const auto* e = std::get_if<CheckpointEntry>(&entry)) checkpoints_[e->name] = *e;
  if (const auto* e = std::get_if<RollbackEntry>(&entry)) roll_back(*e);
  if (const auto* e = std::get_if<EventEntry>(&entry)) events_.push_back(*e);
}

void MemoryJournal::roll_back(const RollbackEntry& entry) {
  for (const LedgerRow& row : cut_ledger(ledger(), entry.to)) ledger_[row.generation] = row;
  for (auto& [name, checkpoint] : checkpoints_) {
    if (checkpoint.step > entry.to.step && checkpoint.state == CheckpointState::kComplete) {
      checkpoint.state = CheckpointState::kRolledBack;
    }
  }
  std::erase_if(evals_, [&](const auto& item) { return item.first > entry.to.step; });
}

std::vector<LedgerRow> MemoryJournal::ledger() const {
  std::vector<LedgerRow> rows;
  for (const auto& [generation, row] : ledger_) rows.push_back(row);
  return rows;
}

Result<JournalContents> MemoryJournal::load() {
  JournalContents contents;
  for (const auto& [key, value] : identity_) contents.identity.push_back({key, value});
  contents.last_term = last_term_;
  contents.last_member = last_member_;
  if (!generations_.empty()) contents.last_generation = generations_.rbegin()->first;
  contents.ledger = ledger();
  for (const auto& [name, entry] : checkpoints_) contents.checkpoints.push_back(entry);
  std::stable_sort(contents.checkpoints.begin(), contents.checkpoints.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  for (const auto& [step, entry] : evals_) contents.evals.push_back(entry);
  return contents;
}

Status MemoryJournal::visit_steps(Step from, Step to,
                                  const std::function<void(const StepEntry&)>& visit) {
  std::map<Step, const StepEntry*> found;
  for (const auto& [key, entry] : steps_) {
    const auto row = ledger_.find(key.first);
    if (row == ledger_.end() || !row->second.covers(key.second)) continue;
    if (key.second >= from && key.second < to) found[key.second] = &entry;
  }
  for (const auto& [step, entry] : found) visit(*entry);
  return Status::ok();
}

Result<std::vector<RecordsEntry>> MemoryJournal::batches(Generation generation, Step from,
                                                         Step to) {
  std::vector<RecordsEntry> found;
  for (const RecordsEntry& batch : batches_) {
    if (batch.generation == generation && batch.records.back().step() >= from &&
        batch.records.front().step() < to) {
      found.push_back(batch);
    }
  }
  return found;
}

}  // namespace lockstep::coordinator
