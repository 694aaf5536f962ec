// The coordinator's memory across crashes: SQLite in production (journal_sqlite.h), plain memory in
// tests and the simulator (journal_memory.h).
//
// INVARIANTS
//  J1 commit() is all or nothing. After a crash at any point, load() gives the result of a prefix
//     of the commits, and the prefix includes every commit that returned ok.
//  J2 After an error every later commit returns the same error. The journal never repeats a failed
//     write or fsync, because the program cannot know what reached the disk. The coordinator stops.
//  J3 A journal has a random lineage id from its creation on, numbers its commits from 1, and
//     chains a digest over them (journal_chain.h). So Lockstep never takes one journal for another,
//     and notices one that has lost commits: something outside has seen a later commit
//     (journal_head.h, and the manifests of checkpoints).
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"
#include "coordinator/journal/step_piece.h"

namespace lockstep::coordinator {

// How far a journal is.
struct JournalMark {
  std::string lineage_id;  // empty: there is no journal
  Term term = 0;           // the newest in it
  uint64_t sequence = 0;   // number of its newest commit; 0: none
  uint64_t digest = 0;     // chained over all commits
  bool operator==(const JournalMark&) const = default;
};

// How much of a journal Lockstep compares with its checksum when it opens the journal.
enum class JournalCheck : uint8_t {
  kNone,      // another check has just found it in order
  kWhole,     // reads everything: for proofs, and before a journal is given up
  kOpenPart,  // all but the steps of closed pieces, which their readers check
};

// Later than any step; fits into a signed number.
inline constexpr Step kNoStep = std::numeric_limits<int64_t>::max();

// The facts that a new term must know. Steps and records are not in it, because they grow with the
// run.
struct JournalContents {
  JournalMark mark;
  std::optional<JournalMark> head;      // what the last writer in the run directory left
  Term first_term = 0;                  // of its file, which began as a copy; 0: it did not
  std::vector<IdentityEntry> identity;  // empty: no generation was ever started
  Term last_term = 0;
  std::string job_json;  // of the last term; empty: no term began
  MemberId last_member = 0;
  Generation last_generation = 0;
  std::vector<MemberEntry> members;          // ascending
  std::vector<GenerationEntry> generations;  // ascending; planned and started ones have `start`
  std::map<MemberId, uint64_t> batches;      // the number of each member's last batch
  std::map<std::string, std::string> settings;
  int64_t wall_ms = 0;                       // of all terms together, each up to its last commit
  std::vector<LedgerRow> ledger;             // ascending
  std::vector<CheckpointEntry> checkpoints;  // ascending by step, all states
  std::vector<EvalEntry> evals;              // of the surviving lineage, ascending by step
  // Ascending by step: all that differed, and each generation's newest that agreed, unless it was
  // rolled back. Nothing asks for the others, and their number grows with the run.
  std::vector<CheckEntry> checks;
  std::vector<WitnessEntry> witnesses;  // ascending by step
  std::vector<SkipEntry> skips;         // ascending by step and slot
  std::vector<FoldEntry> folds;         // ascending by generation and step
};

class Journal {
 public:
  virtual ~Journal() = default;

  // Makes all entries durable, all or none. The wall clock of `now` is for people; the monotonic
  // one tells how long a term lasts, from its TermEntry to its last commit by the same process.
  virtual Status commit(std::span<const JournalEntry> entries, BothClocks now) = 0;

  // After the last commit.
  virtual JournalMark mark() const = 0;

  // kInternal if its files are not where they were: no reader would find what commit() writes.
  virtual Status look() { return Status::ok(); }

  virtual Result<JournalContents> load() = 0;

  // Two parts of load(), for readers during the run.
  virtual Result<std::vector<LedgerRow>> ledger() = 0;
  virtual Result<std::vector<FoldEntry>> folds() = 0;

  // Summaries of the closed pieces of the surviving lineage (step_piece.h). A journal may have
  // none: then a reader visits all steps.
  virtual Result<std::vector<StepPiece>> pieces() { return std::vector<StepPiece>(); }

  // Visits the complete steps in [from, to) of the surviving lineage, ascending.
  virtual Status visit_steps(Step from, Step to,
                             const std::function<void(const StepEntry&)>& visit) = 0;

  // All batches of `generation` with a record of a step in [from, to), by member and number. Folded
  // records are not in them.
  virtual Result<std::vector<RecordsEntry>> batches(Generation generation, Step from, Step to) = 0;

  // Which member had which slots. Empty if that generation never started.
  virtual Result<SlotMapEntry> slot_map(Generation generation) = 0;

  // GenerationEntry.start of a generation in any state. Empty if that generation never started.
  virtual Result<std::string> start_of(Generation generation) = 0;
};

}  // namespace lockstep::coordinator
