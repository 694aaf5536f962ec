// The identity of a run: values that freeze when the first generation starts. With another value,
// the steps before and after a resume would not belong to the same run.
//
// Frozen: seed, dataset fingerprints and sizes, order version, transforms, G, V, model, numerics,
// precision and loss scaling, threads, evaluation batch, optimizer (without its learning rate).
// For a script also its statements about itself (Register.identity), each key with "script." before
// it. Free to change, and recorded with every term: length, learning rate and schedule, workers,
// checkpoints, metrics, bucket size. The data may move, because its fingerprint identifies it.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/plan/mixture.h"
#include "comm/wire/control.pb.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

inline constexpr char kSeedKey[] = "seed";
inline constexpr char kFingerprintKey[] = "data.train fingerprint";
inline constexpr char kSamplesKey[] = "data.train samples";
inline constexpr char kEvalFingerprintKey[] = "data.eval fingerprint";
inline constexpr char kEvalSamplesKey[] = "data.eval samples";
inline constexpr char kOrderVersionKey[] = "data order version";
inline constexpr char kBlockSamplesKey[] = "data.block_samples";
inline constexpr char kWindowBlocksKey[] = "data.window_blocks";
inline constexpr char kLengthClassesKey[] = "data.length_classes";
inline constexpr char kGlobalBatchKey[] = "train.global_batch";
inline constexpr char kSlotsKey[] = "train.slots";
inline constexpr char kTurnsKey[] = "phases of a batch";  // absent: one
// Keys of data set `set` of a mixture; data.train comes first.
std::string mixed_fingerprint_key(size_t set);
std::string mixed_samples_key(size_t set);
std::string mixed_weight_key(size_t set);

// Uses the keys of the job file where they exist. Writes doubles so that equal text means equal
// bits.
std::vector<IdentityEntry> identity_of(const wire::JobSpec& job, const wire::DataFacts& facts);

// kBadData if the key is missing or its value is not a number.
Status read_number(const std::vector<IdentityEntry>& identity, const std::string& key,
                   uint64_t* value);

struct IdentityDifference {
  std::string key;
  std::string stored;
  std::string wanted;
  bool operator==(const IdentityDifference&) const = default;
};

// In the order of `wanted`. A key that only one side has is "(not set)" on the other.
std::vector<IdentityDifference> identity_diff(const std::vector<IdentityEntry>& stored,
                                              const std::vector<IdentityEntry>& wanted);

// kUsage if they differ; the message names every differing key with both values.
Status check_identity(const std::vector<IdentityEntry>& stored,
                      const std::vector<IdentityEntry>& wanted);

// How many updates each batch has (comm/run/plan/step_plan.h). kBadData for an impossible number.
Result<uint32_t> stored_turns(const std::vector<IdentityEntry>& identity);

// V of a job: the stored one on a resume, else the job's, else the number of workers.
uint32_t resolve_slots(const wire::JobSpec& job, const std::vector<IdentityEntry>& stored);

// G of a job: the job's, else the stored one, else 0, which means open (decide/open_term.h).
uint64_t stored_global_batch(const wire::JobSpec& job, const std::vector<IdentityEntry>& stored);

// The data sets of a mixture, not yet checked; empty: it is none. kBadData as read_number().
Result<std::vector<MixedPart>> stored_parts(const std::vector<IdentityEntry>& identity);

// The facts of a script's data, which the journal has from its workers. kBadData if a key is
// missing or not a number.
Result<wire::DataFacts> stored_facts(const std::vector<IdentityEntry>& stored);

// A script's statements about itself, in the form that the journal keeps.
std::vector<IdentityEntry> script_identity(const wire::Register& said);
// The same from the journal, in its order. Empty: no script has said anything yet.
std::vector<IdentityEntry> script_identity(const std::vector<IdentityEntry>& stored);
// Whether a script that has said so has edges (comm/run/evaluation/edge.h).
bool has_edges(const std::vector<IdentityEntry>& script);

}  // namespace lockstep::coordinator
