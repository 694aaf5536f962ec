#include "coordinator/state/identity.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "comm/base/limits.h"
#include "comm/run/evaluation/edge.h"
#include "comm/run/job/job_fields.h"
#include "comm/run/job/job_options.pb.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/job_shuffle.h"

namespace lockstep::coordinator {
namespace {

constexpr char kScriptPrefix[] = "script.";

std::map<std::string, std::string> by_key(const std::vector<IdentityEntry>& entries) {
  std::map<std::string, std::string> map;
  for (const IdentityEntry& entry : entries) map[entry.key] = entry.value;
  return map;
}

std::string mixed_key(size_t set, const char* what) {
  return "data set " + std::to_string(set) + " of the mixture, " + what;
}

// The data that the keys name, as reported by the process that reads them.
void add_facts(const wire::JobSpec& job, const wire::DataFacts& facts,
               std::vector<IdentityEntry>& entries) {
  entries.push_back({kFingerprintKey, facts.train_fingerprint()});
  entries.push_back({kSamplesKey, std::to_string(facts.train_samples())});
  entries.push_back({kEvalFingerprintKey, facts.eval_fingerprint()});
  entries.push_back({kEvalSamplesKey, std::to_string(facts.eval_samples())});
  if (facts.turns() > 1) entries.push_back({kTurnsKey, std::to_string(facts.turns())});
  const uint64_t order_version =
      lockstep::order_version({.has_blocks = block_shuffle(job.data()).is_on(),
                               .has_classes = job.data().length_classes() > 0,
                               .is_mixed = job.data().mix_size() > 0});
  entries.push_back({kOrderVersionKey, std::to_string(order_version)});
  for (int i = 0; i < facts.mixed_size(); ++i) {
    const wire::MixedFacts& mixed = facts.mixed(i);
    const auto set = static_cast<size_t>(i);
    entries.push_back({mixed_fingerprint_key(set), mixed.fingerprint()});
    entries.push_back({mixed_samples_key(set), std::to_string(mixed.samples())});
    entries.push_back({mixed_weight_key(set), std::to_string(mixed.weight())});
  }
}

// The value of a key that counts only together with others; nullopt: it selects nothing in this
// job. All other keys keep `value`.
std::optional<std::string> what_counts(const std::string& key, std::string value,
                                       const wire::DataSpec& data) {
  const BlockShuffle blocks = block_shuffle(data);
  if (key == "data.mix_weight" && data.mix_size() == 0 && data.mix_weight() <= 1) return {};
  const bool is_number_of_blocks = key == kBlockSamplesKey || key == kWindowBlocksKey;
  if ((is_number_of_blocks || key == "data.shuffle") && !blocks.is_on()) return {};
  if (!is_number_of_blocks) return value;
  return std::to_string(key == kBlockSamplesKey ? blocks.block_samples : blocks.window_blocks);
}

}  // namespace

std::string mixed_fingerprint_key(size_t set) {
  return mixed_key(set, "fingerprint");
}
std::string mixed_samples_key(size_t set) {
  return mixed_key(set, "samples");
}
std::string mixed_weight_key(size_t set) {
  return mixed_key(set, "weight");
}

std::vector<IdentityEntry> identity_of(const wire::JobSpec& job, const wire::DataFacts& facts) {
  std::vector<IdentityEntry> entries;
  add_facts(job, facts, entries);
  for (const wire::JobField& field : wire::job_fields()) {
    if (!field.options->frozen()) continue;
    const auto& neutral = field.options->neutral();
    wire::for_each_holder(field, job, [&](const std::string& key, const auto& holder) {
      const auto value = what_counts(key, wire::field_text(holder, *field.way.back()), job.data());
      if (value && std::find(neutral.begin(), neutral.end(), *value) == neutral.end())
        entries.push_back({key, *value});
    });
  }
  return entries;
}

Status read_number(const std::vector<IdentityEntry>& identity, const std::string& key,
                   uint64_t* value) {
  for (const IdentityEntry& entry : identity) {
    if (entry.key != key) continue;
    const char* end = entry.value.data() + entry.value.size();
    const auto read = std::from_chars(entry.value.data(), end, *value);
    if (read.ec == std::errc() && read.ptr == end) return Status::ok();
    return {Code::kBadData,
            "the journal says that " + key + " is \"" + entry.value + "\", which is not a number"};
  }
  return {Code::kBadData, "the journal does not know " + key + " of the run"};
}

std::vector<IdentityDifference> identity_diff(const std::vector<IdentityEntry>& stored,
                                              const std::vector<IdentityEntry>& wanted) {
  constexpr char kAbsent[] = "(not set)";
  std::vector<IdentityDifference> differences;
  std::map<std::string, std::string> left = by_key(stored);
  for (const IdentityEntry& entry : wanted) {
    const auto it = left.find(entry.key);
    if (it == left.end()) {
      differences.push_back({entry.key, kAbsent, entry.value});
      continue;
    }
    if (it->second != entry.value) differences.push_back({entry.key, it->second, entry.value});
    left.erase(it);
  }
  for (const auto& [key, value] : left) differences.push_back({key, value, kAbsent});
  return differences;
}

Status check_identity(const std::vector<IdentityEntry>& stored,
                      const std::vector<IdentityEntry>& wanted) {
  std::string lines;
  for (const IdentityDifference& d : identity_diff(stored, wanted)) {
    lines += (lines.empty() ? "" : "; ") + d.key + " is " + d.stored +
             " in this run and was asked to be " + d.wanted;
  }
  if (lines.empty()) return Status::ok();
  return {Code::kUsage, "what identifies a run cannot change on --resume: " + lines +
                            ". Leave it as it was, or start a new run in another --run-dir"};
}

Result<uint32_t> stored_turns(const std::vector<IdentityEntry>& identity) {
  const auto is_of_turns = [](const IdentityEntry& entry) { return entry.key == kTurnsKey; };
  if (std::none_of(identity.begin(), identity.end(), is_of_turns)) return 1u;
  uint64_t turns = 0;
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kTurnsKey, &turns));
  if (turns > 1 && turns <= limits::kTurns) return static_cast<uint32_t>(turns);
  return Status(Code::kBadData, "the journal says that the run has " + std::to_string(turns) +
                                    " phases of a batch");
}

uint32_t resolve_slots(const wire::JobSpec& job, const std::vector<IdentityEntry>& stored) {
  if (job.train().slots() != 0) return job.train().slots();
  uint64_t slots = 0;
  if (read_number(stored, kSlotsKey, &slots).is_ok() && slots != 0) {
    return static_cast<uint32_t>(slots);
  }
  return std::max(1u, job.cluster().workers());
}

uint64_t stored_global_batch(const wire::JobSpec& job, const std::vector<IdentityEntry>& stored) {
  uint64_t batch = job.train().global_batch();
  if (batch == 0 && !read_number(stored, kGlobalBatchKey, &batch).is_ok()) return 0;
  return batch;
}

Result<std::vector<MixedPart>> stored_parts(const std::vector<IdentityEntry>& identity) {
  const std::map<std::string, std::string> map = by_key(identity);
  std::vector<MixedPart> parts;
  for (size_t set = 0; set < limits::kMixedDatasets; ++set) {
    const auto fingerprint = map.find(mixed_fingerprint_key(set));
    if (fingerprint == map.end()) break;
    MixedPart part{fingerprint->second, 0, 0};
    uint64_t weight = 0;
    LOCKSTEP_RETURN_IF_ERROR(read_number(identity, mixed_samples_key(set), &part.samples));
    LOCKSTEP_RETURN_IF_ERROR(read_number(identity, mixed_weight_key(set), &weight));
    part.weight = static_cast<uint32_t>(std::min<uint64_t>(weight, limits::kMixWeights + 1));
    parts.push_back(std::move(part));
  }
  return parts;
}

Result<wire::DataFacts> stored_facts(const std::vector<IdentityEntry>& stored) {
  wire::DataFacts facts;
  uint64_t samples = 0;
  uint64_t eval_samples = 0;
  LOCKSTEP_RETURN_IF_ERROR(read_number(stored, kSamplesKey, &samples));
  LOCKSTEP_RETURN_IF_ERROR(read_number(stored, kEvalSamplesKey, &eval_samples));
  facts.set_train_samples(samples);
  facts.set_eval_samples(eval_samples);
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t turns, stored_turns(stored));
  if (turns > 1) facts.set_turns(turns);
  for (const IdentityEntry& entry : stored) {
    if (entry.key == kFingerprintKey) facts.set_train_fingerprint(entry.value);
    if (entry.key == kEvalFingerprintKey) facts.set_eval_fingerprint(entry.value);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<MixedPart> parts, stored_parts(stored));
  for (const MixedPart& part : parts) {
    wire::MixedFacts& mixed = *facts.add_mixed();
    mixed.set_fingerprint(part.fingerprint);
    mixed.set_samples(part.samples);
    mixed.set_weight(part.weight);
  }
  if (samples > 0) return facts;
  return Status(Code::kBadData, "the journal says that the run has no samples");
}

std::vector<IdentityEntry> script_identity(const wire::Register& said) {
  std::vector<IdentityEntry> entries;
  for (const wire::IdentityFact& fact : said.identity())
    entries.push_back({kScriptPrefix + fact.key(), fact.value()});
  return entries;
}

std::vector<IdentityEntry> script_identity(const std::vector<IdentityEntry>& stored) {
  std::vector<IdentityEntry> entries;
  for (const IdentityEntry& entry : stored)
    if (entry.key.starts_with(kScriptPrefix)) entries.push_back(entry);
  return entries;
}

bool has_edges(const std::vector<IdentityEntry>& script) {
  return std::any_of(script.begin(), script.end(), [](const IdentityEntry& entry) {
    return entry.key == std::string(kScriptPrefix) + kLoopFact && entry.value == kLoopOverEpochs;
  });
}

}  // namespace lockstep::coordinator
