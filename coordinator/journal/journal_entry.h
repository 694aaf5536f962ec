// The facts that decide() wants durable. Each entry is a row of a table (journal_schema.h). All
// entries of one turn of the loop are one commit.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "comm/base/ids.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/wire/control.pb.h"
#include "coordinator/journal/ledger.h"

namespace lockstep::coordinator {

// kPlanned: prepared ahead. Its members may have switched to it before the coordinator hears of it.
enum class GenerationState : uint8_t {
  kPrepared = 0,
  kStarted = 1,
  kClosed = 2,
  kAbandoned = 3,
  kPlanned = 4,
};

enum class CheckpointState : uint8_t {
  kComplete = 0,    // counts
  kDropped = 1,     // the coordinator told the writer to delete it
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
  std::string job_json;  // the job of this term, including values that may change between terms
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
  std::vector<MemberId> members;  // by rank; counts only when the generation is new
  std::string start;  // the pushed wire::Start of a planned or started one; empty: unchanged
};

struct SlotMapEntry {
  Generation generation = 0;
  std::vector<MemberId> members;  // by rank
  std::vector<SlotRun> runs;      // by rank
};

struct LedgerEntry {
  LedgerRow row;  // inserted or replaced, by generation
};

// A batch as one rank sent it: agreement hashes, phase times, and, from the first rank that reports
// a step, the digests of all slots.
struct RecordsEntry {
  Generation generation = 0;
  MemberId member = 0;
  uint64_t batch = 0;
  // Ascending, and contiguous except for folded records. Empty: the batch was acknowledged, no step
  // in it survives, and the journal keeps only its number.
  std::vector<wire::StepRecord> records;
};

// A value of a model with metrics of its own (wire::Metric).
struct MetricValue {
  std::string name;
  double value = 0;
  bool operator==(const MetricValue&) const = default;
};

// A step that every rank of its generation has reported.
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
  uint64_t wall_us = 0;                   // sum of the writer's phase times
  bool no_accuracy = false;               // the loss knows no right predictions
  std::vector<MetricValue> metrics = {};  // means over the step's samples
};

// Makes the entry from a rank's record of a step that it applied in `generation`.
StepEntry step_entry(const wire::StepRecord& record, Generation generation);

struct EvalEntry {
  Generation generation = 0;
  Step step = 0;  // steps applied before the evaluation
  Epoch epoch = 0;
  uint64_t samples = 0;
  uint64_t correct = 0;
  double loss = 0;
  std::optional<uint64_t> top5 = {};  // none: fewer than 10 classes, tokens, or an older journal
  std::optional<double> lr = {};      // of the last step before it; none: an older journal
  bool no_accuracy = false;           // as in StepEntry; `metrics`, too
  std::vector<MetricValue> metrics = {};
};

// The same values in a message's field, and the other way round.
std::vector<MetricValue> metrics_of(const google::protobuf::RepeatedPtrField<wire::Metric>& field);
void put_metrics(const std::vector<MetricValue>& metrics,
                 google::protobuf::RepeatedPtrField<wire::Metric>* field);

// Makes the entry from the report of a rank that evaluated in `generation`.
EvalEntry eval_entry(const wire::EvalReport& report, Generation generation);

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

// Continues the lineage from `to`: cuts ledger rows there, and takes later checkpoints and
// evaluations out of the lineage. It is one entry, so that a commit cannot have half of it.
struct RollbackEntry {
  ResumePoint to;
  std::string checkpoint;  // empty: from the initial weights
  std::string reason;
};

// A check after `step` applied steps, at which members compared weights and results
// (train.check_every).
struct CheckEntry {
  Generation generation = 0;
  Step step = 0;
  bool agreed = false;
  // Set if they differed: the worker there computed wrong, and no worker of this place takes part
  // any more. Empty: no majority.
  std::string node;
  uint32_t local_rank = 0;
  bool rolled_back = false;  // for readers: the lineage was cut before it
  bool goes_on = false;      // the policy did not cut the lineage, which is tainted from here on
};

// The value of one place at a check without a majority. When the step is computed again, it may
// show who was right.
enum class CheckSubject : uint8_t { kWeights = 0, kGradient = 1, kSum = 2 };
struct WitnessEntry {
  Generation generation = 0;
  Step step = 0;  // steps applied
  CheckSubject subject = CheckSubject::kWeights;
  std::string node;
  uint32_t local_rank = 0;
  uint64_t hash = 0;
};

// Every generation newer than `generation` leaves these slots out of the step.
struct SkipEntry {
  Generation generation = 0;  // the newest one given out when their harm was known
  Step step = 0;              // 0-based
  SlotRun slots;
  std::string reason;
};

// The slots are left out of the step no more. No step that survives has gone without them.
struct UnskipEntry {
  Step step = 0;  // 0-based
  SlotRun slots;
};

// The records of steps [first, last) of one generation agreed with the plan, and one hash replaces
// them. The journal deletes them from their batches, and keeps only the number of a batch without
// records. A rollback does not change a fold: like the batches, the fold says what the generation
// did, and the ledger says how much of it survives.
struct FoldEntry {
  Generation generation = 0;
  Step first = 0;
  Step last = 0;
  uint64_t samples = 0;
  uint64_t digest = 0;  // chained over the digests of all slots of all steps, in order
};

inline constexpr char kNodeSetting[] = "node ";
inline constexpr char kEmptiedSetting[] = "emptied ";
inline constexpr char kKeptSetting[] = "keeps ";
inline constexpr char kLeavingSetting[] = "leaving ";
inline constexpr char kStopSetting[] = "stop";           // why the run is to stop
inline constexpr char kCodeSetting[] = "script code";    // Register.code_hash of the run's workers
inline constexpr char kStateSetting[] = "script state";  // Register.state_hash; a resume keeps it
inline constexpr char kEndSetting[] = "script end";      // state/script_end.h; a resume keeps it

// A value that outlives the coordinator until somebody resumes the run.
struct SettingEntry {
  std::string key;    // "workers": the wanted number. "end": code and message of a run that ended.
                      // kEndSetting: where its script has ended the run
                      // kNodeSetting and a node: its machine (state/node_names.h).
                      // kEmptiedSetting and a node: State.emptied
                      // kKeptSetting and a node: State.workers_of_node
                      // kLeavingSetting and a member: State.ordered_to_leave
  std::string value;  // empty: removes the key
};

// An event for people that changes nothing: deaths, refusals, warnings, the end.
struct EventEntry {
  Generation generation = 0;
  std::string kind;
  std::string text;
};

using JournalEntry =
    std::variant<IdentityEntry, TermEntry, MemberEntry, GenerationEntry, SlotMapEntry, LedgerEntry,
                 RecordsEntry, StepEntry, EvalEntry, CheckpointEntry, RollbackEntry, CheckEntry,
                 WitnessEntry, SkipEntry, UnskipEntry, FoldEntry, SettingEntry, EventEntry>;

}  // namespace lockstep::coordinator
