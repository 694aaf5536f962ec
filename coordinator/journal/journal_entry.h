// What decide() asks to be made durable. Each entry is a row of a table (journal_schema.h); all
// entries of one turn of the loop are one commit.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "comm/base/ids.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/wire/control.pb.h"
#include "coordinator/journal/ledger.h"

namespace lockstep::coordinator {

// kPlanned: prepared ahead, and perhaps switched to by its members before anybody heard of it.
enum class GenerationState : uint8_t {
  kPrepared = 0,
  kStarted = 1,
  kClosed = 2,
  kAbandoned = 3,
  kPlanned = 4,
};

enum class CheckpointState : uint8_t {
  kComplete = 0,    // counts
  kDropped = 1,     // the writer was told to delete it
  kRolledBack = 2,  // left the lineage; may be deleted
};

// One frozen value that identifies the run.
struct IdentityEntry {
  std::string key;
  std::string value;
  bool operator==(const IdentityEntry&) const = default;
};

struct TermEntry {
  Term term = 0;
  uint32_t pid = 0;
  std::string job_json;  // the job of this term, also what may change between terms
};

struct MemberEntry {
  MemberId member = 0;
  Term term = 0;
  std::string node;
  uint32_t local_rank = 0;
  uint32_t pid = 0;
};

struct GenerationEntry {
  Generation generation = 0;
  Term term = 0;
  GenerationState state = GenerationState::kPrepared;
  std::vector<MemberId> members;  // by rank; only read when the generation is new
  std::string start;  // wire::Start as pushed, of a planned or started one; empty: as it was
};

struct SlotMapEntry {
  Generation generation = 0;
  std::vector<MemberId> members;  // by rank
  std::vector<SlotRun> runs;      // by rank
};

struct LedgerEntry {
  LedgerRow row;  // inserted or replaced, by generation
};

// A batch as it came from one rank: agreement hashes, phase times, and, from the first rank that
// reports a step, the digests of all its slots.
struct RecordsEntry {
  Generation generation = 0;
  MemberId member = 0;
  uint64_t batch = 0;
  // Ascending, contiguous but for what was folded since. Empty: the batch was acknowledged, and no
  // step in it survives; only its number is kept.
  std::vector<wire::StepRecord> records;
};

// One step that every rank of its generation has reported.
struct StepEntry {
  Generation generation = 0;
  Step step = 0;  // 0-based
  Epoch epoch = 0;
  uint64_t samples = 0;
  uint64_t correct = 0;
  double loss = 0;
  double lr = 0;
  bool skipped = false;
  uint64_t common_hash = 0;
  uint64_t wall_us = 0;  // the writer's phase times together
};

// What a rank's record says of a step that it applied in `generation`.
StepEntry step_entry(const wire::StepRecord& record, Generation generation);

struct EvalEntry {
  Generation generation = 0;
  Step step = 0;  // steps applied when it was made
  Epoch epoch = 0;
  uint64_t samples = 0;
  uint64_t correct = 0;
  double loss = 0;
};

struct CheckpointEntry {
  std::string name;
  Step step = 0;
  Generation generation = 0;
  MemberId member = 0;
  std::string manifest_sha256;
  std::string weights_sha256;
  uint64_t bytes = 0;
  bool final = false;
  CheckpointState state = CheckpointState::kComplete;
};

// The lineage continues from `to`: ledger rows are cut there, later checkpoints and evaluations
// leave the lineage. One entry, so that no half of it can be committed.
struct RollbackEntry {
  ResumePoint to;
  std::string checkpoint;  // empty: from the initial weights
  std::string reason;
};

// Members compared what they hold and compute (train.check_every), after `step` applied steps.
struct CheckEntry {
  Generation generation = 0;
  Step step = 0;
  bool agreed = false;
  // They differed, and who was there computed wrong: no worker of this place takes part any more.
  // Empty: it could not be said who.
  std::string node;
  uint32_t local_rank = 0;
  bool rolled_back = false;  // read only: the lineage was cut before it
  bool goes_on = false;      // by policy the lineage was not cut: it is tainted from here on
};

// What one place held or computed at a check at which the workers differed and no majority could
// say who was right: the same step computed again may tell.
enum class CheckSubject : uint8_t { kWeights = 0, kGradient = 1, kSum = 2 };
struct WitnessEntry {
  Generation generation = 0;
  Step step = 0;  // steps applied
  CheckSubject subject = CheckSubject::kWeights;
  std::string node;
  uint32_t local_rank = 0;
  uint64_t hash = 0;
};

// Slots [begin, end) of one step are left out of it in every generation newer than `generation`.
struct SkipEntry {
  Generation generation = 0;  // in which they did harm
  Step step = 0;              // 0-based
  SlotRun slots;
  std::string reason;
};

// The records of steps [first, last) of one generation agreed with the plan; from here on one hash
// stands for them. They are deleted from their batches, and a batch without any, but for its
// number. A rollback leaves a fold alone: like the batches it says what the generation did, and the
// ledger says how much of that survives.
struct FoldEntry {
  Generation generation = 0;
  Step first = 0;
  Step last = 0;
  uint64_t samples = 0;
  uint64_t digest = 0;  // chained over the digests of all slots of all steps, in order
};

// What outlives a coordinator until somebody resumes the run.
struct SettingEntry {
  std::string key;  // "workers": how many are wanted. "end": code and message, of a run that ended
  std::string value;  // empty: not so any more
};

// Something worth keeping that changes nothing: deaths, refusals, warnings, the end.
struct EventEntry {
  Generation generation = 0;
  std::string kind;
  std::string text;
};

using JournalEntry =
    std::variant<IdentityEntry, TermEntry, MemberEntry, GenerationEntry, SlotMapEntry, LedgerEntry,
                 RecordsEntry, StepEntry, EvalEntry, CheckpointEntry, RollbackEntry, CheckEntry,
                 WitnessEntry, SkipEntry, FoldEntry, SettingEntry, EventEntry>;

}  // namespace lockstep::coordinator
