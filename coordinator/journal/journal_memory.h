// A Journal in memory, for tests and the simulator. Tests can make commit() fail.
//
// Thread-safety: one thread.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

class MemoryJournal final : public Journal {
 public:
  explicit MemoryJournal(std::string lineage_id = {}) : lineage_id_(std::move(lineage_id)) {}

  Status commit(std::span<const JournalEntry> entries, BothClocks now) override;
  JournalMark mark() const override;
  Result<JournalContents> load() override;
  Result<std::vector<LedgerRow>> ledger() override { return rows(); }
  Result<std::vector<FoldEntry>> folds() override;
  Status visit_steps(Step from, Step to,
                     const std::function<void(const StepEntry&)>& visit) override;
  Result<std::vector<RecordsEntry>> batches(Generation generation, Step from, Step to) override;
  Result<SlotMapEntry> slot_map(Generation generation) override;
  Result<std::string> start_of(Generation generation) override;

  void fail_from_now_on(Status error) { error_ = std::move(error); }
  uint64_t commits() const { return commits_; }
  const std::vector<EventEntry>& events() const { return events_; }
  std::map<Generation, GenerationState> generations() const;

 private:
  void apply(const JournalEntry& entry, BothClocks now);
  void change_generation(const GenerationEntry& entry);
  void set(const SettingEntry& entry);
  void roll_back(const RollbackEntry& entry);
  void fold(const FoldEntry& entry);
  std::vector<LedgerRow> rows() const;

  std::string lineage_id_;
  Status error_;
  uint64_t commits_ = 0;
  std::map<std::string, std::string> identity_;
  struct TermTimes {
    int64_t started_ms = 0;  // monotonic
    int64_t last_ms = 0;
    std::string job_json = {};
  };
  std::map<Term, TermTimes> terms_;
  std::map<MemberId, MemberEntry> members_;
  std::map<Generation, GenerationEntry> generations_;
  std::map<std::string, std::string> settings_;
  std::map<Generation, SlotMapEntry> slot_maps_;
  std::map<Generation, LedgerRow> ledger_;
  std::map<std::pair<Generation, Step>, StepEntry> steps_;
  std::vector<RecordsEntry> batches_;
  std::map<std::string, CheckpointEntry> checkpoints_;
  std::map<Step, EvalEntry> evals_;
  std::map<std::tuple<Step, Generation, std::string, uint32_t>, CheckEntry> checks_;
  std::map<std::tuple<Step, Generation, CheckSubject, std::string, uint32_t>, WitnessEntry>
      witnesses_;
  std::map<std::tuple<Step, uint32_t, uint32_t, Generation>, SkipEntry> skips_;
  std::map<std::pair<Generation, Step>, FoldEntry> folds_;
  std::map<MemberId, uint64_t> folded_batches_;
  std::vector<EventEntry> events_;
};

}  // namespace lockstep::coordinator
