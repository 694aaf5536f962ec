#include "coordinator/journal/journal_memory.h"

#include <algorithm>
#include <tuple>

namespace lockstep::coordinator {

Status MemoryJournal::commit(std::span<const JournalEntry> entries, BothClocks now) {
  if (!error_.is_ok()) return error_;
  for (const JournalEntry& entry : entries) apply(entry, now);
  if (!terms_.empty()) terms_.rbegin()->second.last_ms = now.monotonic_ms;
  ++commits_;
  return Status::ok();
}

void MemoryJournal::change_generation(const GenerationEntry& entry) {
  const auto [it, is_new] = generations_.try_emplace(entry.generation, entry);
  if (is_new) return;
  it->second.term = entry.term;
  it->second.state = entry.state;
  if (!entry.start.empty()) it->second.start = entry.start;
}

void MemoryJournal::set(const SettingEntry& entry) {
  if (entry.value.empty()) {
    settings_.erase(entry.key);
  } else {
    settings_[entry.key] = entry.value;
  }
}

void MemoryJournal::apply(const JournalEntry& entry, BothClocks now) {
  if (const auto* e = std::get_if<IdentityEntry>(&entry)) identity_[e->key] = e->value;
  if (const auto* e = std::get_if<TermEntry>(&entry))
    terms_[e->term] = {now.monotonic_ms, now.monotonic_ms, e->job_json};
  if (const auto* e = std::get_if<MemberEntry>(&entry)) members_[e->member] = *e;
  if (const auto* e = std::get_if<GenerationEntry>(&entry)) change_generation(*e);
  if (const auto* e = std::get_if<SlotMapEntry>(&entry)) slot_maps_[e->generation] = *e;
  if (const auto* e = std::get_if<LedgerEntry>(&entry)) ledger_[e->row.generation] = e->row;
  if (const auto* e = std::get_if<RecordsEntry>(&entry)) batches_.push_back(*e);
  if (const auto* e = std::get_if<StepEntry>(&entry)) steps_[{e->generation, e->step}] = *e;
  if (const auto* e = std::get_if<EvalEntry>(&entry)) evals_[e->step] = *e;
  if (const auto* e = std::get_if<CheckpointEntry>(&entry)) checkpoints_[e->name] = *e;
  if (const auto* e = std::get_if<RollbackEntry>(&entry)) roll_back(*e);
  if (const auto* e = std::get_if<CheckEntry>(&entry)) {
    checks_[{e->step, e->generation, e->node, e->local_rank}] = *e;
  }
  if (const auto* e = std::get_if<WitnessEntry>(&entry)) {
    witnesses_[{e->step, e->generation, e->subject, e->node, e->local_rank}] = *e;
  }
  if (const auto* e = std::get_if<SkipEntry>(&entry)) {
    skips_[{e->step, e->slots.begin, e->slots.end, e->generation}] = *e;
  }
  if (const auto* e = std::get_if<UnskipEntry>(&entry)) {
    std::erase_if(skips_, [e](const auto& item) {
      return item.second.step == e->step && item.second.slots == e->slots;
    });
  }
  if (const auto* e = std::get_if<FoldEntry>(&entry)) fold(*e);
  if (const auto* e = std::get_if<SettingEntry>(&entry)) set(*e);
  if (const auto* e = std::get_if<EventEntry>(&entry)) events_.push_back(*e);
}

void MemoryJournal::roll_back(const RollbackEntry& entry) {
  for (const LedgerRow& row : cut_ledger(rows(), entry.to)) ledger_[row.generation] = row;
  for (auto& [name, checkpoint] : checkpoints_) {
    if (checkpoint.step > entry.to.step && checkpoint.state == CheckpointState::kComplete) {
      checkpoint.state = CheckpointState::kRolledBack;
    }
  }
  std::erase_if(evals_, [&](const auto& item) { return item.first > entry.to.step; });
  for (auto& [key, check] : checks_) {
    check.rolled_back = check.rolled_back || check.step > entry.to.step;
  }
}

void MemoryJournal::fold(const FoldEntry& entry) {
  folds_[{entry.generation, entry.first}] = entry;
  std::erase_if(batches_, [&](RecordsEntry& batch) {
    if (batch.generation != entry.generation) return false;
    const size_t folded = std::erase_if(batch.records, [&](const wire::StepRecord& record) {
      return record.step() >= entry.first && record.step() < entry.last;
    });
    if (folded == 0 || !batch.records.empty()) return false;
    uint64_t& last = folded_batches_[batch.member];
    last = std::max(last, batch.batch);
    return true;
  });
}

Result<std::vector<FoldEntry>> MemoryJournal::folds() {
  std::vector<FoldEntry> found;
  for (const auto& [key, entry] : folds_) found.push_back(entry);
  return found;
}

std::vector<LedgerRow> MemoryJournal::rows() const {
  std::vector<LedgerRow> rows;
  for (const auto& [generation, row] : ledger_) rows.push_back(row);
  return rows;
}

std::map<Generation, GenerationState> MemoryJournal::generations() const {
  std::map<Generation, GenerationState> states;
  for (const auto& [generation, entry] : generations_) states[generation] = entry.state;
  return states;
}

// Its entries are what they were, so that a digest has nothing to find.
JournalMark MemoryJournal::mark() const {
  return {lineage_id_, terms_.empty() ? 0 : terms_.rbegin()->first, commits_, 0};
}

Result<JournalContents> MemoryJournal::load() {
  JournalContents contents;
  contents.mark = mark();
  for (const auto& [key, value] : identity_) contents.identity.push_back({key, value});
  contents.settings = settings_;
  for (const auto& [term, times] : terms_) {
    contents.last_term = term;
    contents.job_json = times.job_json;
    contents.wall_ms += std::max<int64_t>(0, times.last_ms - times.started_ms);
  }
  for (const auto& [member, entry] : members_) contents.members.push_back(entry);
  if (!members_.empty()) contents.last_member = members_.rbegin()->first;
  for (const auto& [generation, entry] : generations_) {
    contents.generations.push_back(entry);
    const bool is_live =
        entry.state == GenerationState::kStarted || entry.state == GenerationState::kPlanned;
    if (!is_live) contents.generations.back().start.clear();
  }
  if (!generations_.empty()) contents.last_generation = generations_.rbegin()->first;
  contents.batches = folded_batches_;
  for (const RecordsEntry& batch : batches_) {
    uint64_t& last = contents.batches[batch.member];
    last = std::max(last, batch.batch);
  }
  contents.ledger = rows();
  for (const auto& [name, entry] : checkpoints_) contents.checkpoints.push_back(entry);
  std::stable_sort(contents.checkpoints.begin(), contents.checkpoints.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  for (const auto& [step, entry] : evals_) contents.evals.push_back(entry);
  std::map<Generation, Step> newest;
  for (const auto& [key, entry] : checks_) {
    if (entry.agreed && !entry.rolled_back) newest[entry.generation] = entry.step;
  }
  for (const auto& [key, entry] : checks_) {
    const bool is_newest = !entry.rolled_back && newest[entry.generation] == entry.step;
    if (!entry.agreed || is_newest) contents.checks.push_back(entry);
  }
  for (const auto& [key, entry] : witnesses_) contents.witnesses.push_back(entry);
  for (const auto& [key, entry] : skips_) contents.skips.push_back(entry);
  for (const auto& [key, entry] : folds_) contents.folds.push_back(entry);
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

Result<SlotMapEntry> MemoryJournal::slot_map(Generation generation) {
  const auto it = slot_maps_.find(generation);
  return it == slot_maps_.end() ? SlotMapEntry{generation, {}, {}} : it->second;
}

Result<std::string> MemoryJournal::start_of(Generation generation) {
  const auto it = generations_.find(generation);
  return it == generations_.end() ? std::string() : it->second.start;
}

Result<std::vector<RecordsEntry>> MemoryJournal::batches(Generation generation, Step from,
                                                         Step to) {
  std::vector<RecordsEntry> found;
  for (const RecordsEntry& batch : batches_) {
    if (batch.generation == generation && !batch.records.empty() &&
        batch.records.back().step() >= from && batch.records.front().step() < to) {
      found.push_back(batch);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const RecordsEntry& a, const RecordsEntry& b) {
    return std::tie(a.member, a.batch) < std::tie(b.member, b.batch);
  });
  return found;
}

}  // namespace lockstep::coordinator
