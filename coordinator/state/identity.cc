#include "coordinator/state/identity.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "data/order/epoch_order.h"
#include "data/order/job_shuffle.h"

namespace lockstep::coordinator {
namespace {

std::string text(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);  // shortest that is exact
  return {buffer, end.ptr};
}

std::string text(uint64_t value) {
  return std::to_string(value);
}
std::string text(uint32_t value) {
  return std::to_string(value);
}
std::string text(bool value) {
  return value ? "true" : "false";
}
std::string text(const std::string& value) {
  return value;
}

std::map<std::string, std::string> by_key(const std::vector<IdentityEntry>& entries) {
  std::map<std::string, std::string> map;
  for (const IdentityEntry& entry : entries) map[entry.key] = entry.value;
  return map;
}

std::string mixed_key(size_t set, const char* what) {
  return "data set " + std::to_string(set) + " of the mixture, " + what;
}

// What a mixture adds: how it is mixed, from the job, and of what, from who reads the data.
void add_mixture(const wire::DataSpec& data, const wire::DataFacts& facts,
                 std::vector<IdentityEntry>& entries) {
  if (data.mix_size() > 0 || data.mix_weight() > 1)
    entries.push_back({"data.mix_weight", text(data.mix_weight())});
  for (int i = 0; i < data.mix_size(); ++i) {
    const std::string key = "data.mix." + std::to_string(i);
    entries.push_back({key + ".weight", text(data.mix(i).weight())});
    entries.push_back({key + ".fraction", text(data.mix(i).fraction())});
  }
  for (int i = 0; i < facts.mixed_size(); ++i) {
    const wire::MixedFacts& mixed = facts.mixed(i);
    const auto set = static_cast<size_t>(i);
    entries.push_back({mixed_fingerprint_key(set), mixed.fingerprint()});
    entries.push_back({mixed_samples_key(set), text(mixed.samples())});
    entries.push_back({mixed_weight_key(set), text(mixed.weight())});
  }
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
  const auto add = [&](const char* key, const auto& value) {
    entries.push_back({key, text(value)});
  };
  add(kSeedKey, job.seed());
  add("model.name", job.model().name());
  add("model.dropout", job.model().dropout());
  add("model.batch_norm", job.model().batch_norm());
  add("model.stem", job.model().stem());
  add("model.size", job.model().size());
  add("model.n_layer", job.model().n_layer());
  add("model.n_head", job.model().n_head());
  add("model.n_embd", job.model().n_embd());
  add("model.block", job.model().block());
  add("model.vocab", job.model().vocab());
  if (!job.model().sha256().empty()) add("model.sha256", job.model().sha256());
  add(kFingerprintKey, facts.train_fingerprint());
  add(kSamplesKey, facts.train_samples());
  add("data.eval fingerprint", facts.eval_fingerprint());
  add("data.eval samples", facts.eval_samples());
  const data::BlockShuffle blocks = data::block_shuffle(job.data());
  const uint32_t classes = job.data().length_classes();
  add(kOrderVersionKey, data::order_version({.has_blocks = blocks.is_on(),
                                             .has_classes = classes > 0,
                                             .is_mixed = job.data().mix_size() > 0}));
  add_mixture(job.data(), facts, entries);
  if (blocks.is_on()) {
    add("data.shuffle", job.data().shuffle());
    add(kBlockSamplesKey, blocks.block_samples);
    add(kWindowBlocksKey, blocks.window_blocks);
  }
  if (classes > 0) add(kLengthClassesKey, classes);
  // Where they say nothing they are left out, as of runs from before they were there. What they
  // select is in the fingerprints, too.
  const wire::DataSpec& data = job.data();
  const auto add_share = [&](const char* key, double share) {
    if (share != 0 && share != 1) add(key, share);
  };
  add_share("data.train.fraction", data.train().fraction());
  add_share("data.eval.fraction", data.eval().fraction());
  add_share("data.holdout", data.holdout());
  if (data.split_seed() != 0) add("data.split_seed", data.split_seed());
  if (!data.tokenizer_sha256().empty()) add("data.tokenizer_sha256", data.tokenizer_sha256());
  const bool has_documents = !data.documents().empty() && data.documents() != "stream";
  if (has_documents) add("data.documents", data.documents());
  if (!data.document_end().empty()) add("data.document_end", data.document_end());
  std::string transforms;
  for (const std::string& name : job.data().transforms()) transforms += "[" + name + "]";
  add("data.transforms", transforms);
  add(kGlobalBatchKey, job.train().global_batch());
  add(kSlotsKey, job.train().slots());
  add("train.threads_per_worker", job.train().threads_per_worker());
  add("train.eval_batch", job.train().eval_batch());
  add("comm.numerics", job.comm().numerics());
  add("train.accumulate", job.train().accumulate());
  add("train.precision", job.train().precision());
  add("train.loss_scale", job.train().loss_scale());
  add("train.loss_scale_growth", job.train().loss_scale_growth());
  add("train.loss_scale_growth_every", job.train().loss_scale_growth_every());
  add("train.loss_scale_backoff", job.train().loss_scale_backoff());
  // Runs that were begun before the key was there have no such entry.
  if (job.train().label_smoothing() != 0)
    add("train.label_smoothing", job.train().label_smoothing());
  const wire::OptimizerSpec& optimizer = job.optimizer();
  add("optimizer.name", optimizer.name());
  add("optimizer.weight_decay", optimizer.weight_decay());
  add("optimizer.momentum", optimizer.momentum());
  add("optimizer.beta1", optimizer.beta1());
  add("optimizer.beta2", optimizer.beta2());
  add("optimizer.eps", optimizer.eps());
  add("optimizer.nesterov", optimizer.nesterov());
  add("optimizer.alpha", optimizer.alpha());
  add("optimizer.centered", optimizer.centered());
  add("optimizer.lr_decay", optimizer.lr_decay());
  add("optimizer.rho", optimizer.rho());
  add("optimizer.momentum_decay", optimizer.momentum_decay());
  add("optimizer.spare_vectors", optimizer.spare_vectors());
  add("optimizer.clip_norm", optimizer.clip_norm());
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
            "the journal says that " + key + " is \"" + entry.value + "\", which is no number"};
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

}  // namespace lockstep::coordinator
