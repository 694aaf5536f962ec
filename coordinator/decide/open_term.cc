#include "coordinator/decide/open_term.h"

#include <algorithm>

#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "comm/base/text/printable.h"
#include "comm/base/text/utf8.h"
#include "comm/run/plan/mixture.h"
#include "coordinator/state/auto_batch.h"
#include "coordinator/state/identity.h"

namespace lockstep::coordinator {
namespace {

// Batch normalization of a single value is refused; a model from a file may have some.
uint64_t smallest_slot(const wire::ModelSpec& model) {
  return model.batch_norm() || is_from_file(model) ? 2 : 1;
}

// The job with G.
wire::JobSpec with_batch(Turn& turn, const std::vector<MemberId>& members, uint64_t samples) {
  wire::JobSpec job = turn.options.job;
  if (!turn.options.is_batch_open()) return job;
  std::vector<uint64_t> largest;
  for (MemberId id : members) largest.push_back(turn.at(id).largest_slot);
  const size_t least =
      static_cast<size_t>(std::min_element(largest.begin(), largest.end()) - largest.begin());
  const uint32_t slots = turn.options.shape.slots;
  const uint64_t batch = auto_global_batch({slots, samples, smallest_slot(job.model()), largest});
  const uint64_t steps = (samples + batch - 1) / batch;
  job.mutable_train()->set_global_batch(batch);
  turn.note(LogLine::Level::kInfo, "global_batch",
            "train.global_batch auto is " + std::to_string(batch) +
                " from now on: " + counted(slots, "slot") + " of " + std::to_string(batch / slots) +
                ", " + counted(steps, "step") + " an epoch" +
                (steps < kLeastStepsAnEpoch
                     ? " and no more, because a slot cannot be smaller: take fewer slots"
                     : "") +
                "; " + describe(turn.state, turn.at(members[least])) + " has room for " +
                std::to_string(largest[least]) + ", the least");
  return job;
}

// Only what the identity keeps: the next term compares with these.
wire::DataFacts kept_facts(const wire::DataFacts& told) {
  wire::DataFacts facts;
  facts.set_train_fingerprint(told.train_fingerprint());
  facts.set_train_samples(told.train_samples());
  facts.set_eval_fingerprint(told.eval_fingerprint());
  facts.set_eval_samples(told.eval_samples());
  if (told.turns() > 1) facts.set_turns(told.turns());
  *facts.mutable_mixed() = told.mixed();
  return facts;
}

std::string what_is_known(const Options& options, const wire::DataFacts& facts) {
  if (!options.is_script_open()) return "the global batch is resolved";
  return "all workers tell the same of the script: " +
         counted(facts.train_samples(), "training sample") + ", " +
         std::to_string(facts.eval_samples()) + " for evaluation";
}

bool is_fingerprint(const std::string& text) {
  return text.size() <= limits::kFingerprintBytes && is_printable_utf8(text);
}

// The fault in the mixture that a script's worker reports, in words. Empty: there is none.
std::string wrong_mixture(const wire::DataFacts& facts) {
  if (facts.mixed().empty()) return {};
  if (static_cast<size_t>(facts.mixed_size()) > limits::kMixedDatasets)
    return "a mixture of " + std::to_string(facts.mixed_size()) + " data sets";
  std::vector<MixedPart> parts;
  for (const wire::MixedFacts& part : facts.mixed()) {
    if (!is_fingerprint(part.fingerprint()))
      return "a data set of a mixture with a fingerprint that is none";
    parts.push_back({part.fingerprint(), part.samples(), part.weight()});
  }
  if (const Status possible = check_mixture(parts); !possible.is_ok())
    return "an impossible mixture: " + possible.message();
  return units_of(parts) == facts.train_samples() ? std::string() : "a mixture of other samples";
}

std::string wrong_facts(const wire::DataFacts& facts) {
  if (facts.train_samples() == 0) return "0 training samples";
  if (std::max(facts.train_samples(), facts.eval_samples()) > limits::kScriptSamples)
    return "more than " + std::to_string(limits::kScriptSamples) + " samples";
  if (facts.turns() > limits::kTurns)
    return "more than " + std::to_string(limits::kTurns) + " phases of a batch";
  if (facts.train_fingerprint().empty()) return "no fingerprint of its training data";
  if (facts.eval_samples() > 0 && facts.eval_fingerprint().empty())
    return "no fingerprint of its evaluation data";
  if (!is_fingerprint(facts.train_fingerprint()) || !is_fingerprint(facts.eval_fingerprint()))
    return "a fingerprint that is longer than " + std::to_string(limits::kFingerprintBytes) +
           " bytes or has control characters";
  return wrong_mixture(facts);
}

std::string wrong_identity(const wire::Register& m) {
  if (m.identity().empty()) return "nothing of itself";
  if (static_cast<size_t>(m.identity_size()) > limits::kIdentityFacts)
    return std::to_string(m.identity_size()) + " facts of itself, more than " +
           std::to_string(limits::kIdentityFacts);
  size_t bytes = 0;
  const std::string* before = nullptr;
  for (const wire::IdentityFact& fact : m.identity()) {
    const std::string& key = fact.key();
    if (key.empty() || key.size() > limits::kIdentityKeyBytes || !is_printable_utf8(key))
      return "the key \"" + printable(key.substr(0, limits::kIdentityKeyBytes)) +
             "\", which is empty, longer than " + std::to_string(limits::kIdentityKeyBytes) +
             " bytes or has control characters";
    if (fact.value().size() > limits::kIdentityValueBytes)
      return "a value of " + std::to_string(fact.value().size()) + " bytes for " + key +
             ", more than " + std::to_string(limits::kIdentityValueBytes);
    if (before != nullptr && *before == key) return "the key " + key + " twice";
    if (before != nullptr && *before > key) return "the key " + key + " behind " + *before;
    before = &key;
    bytes += key.size() + fact.value().size();
  }
  if (bytes <= limits::kIdentityBytes) return {};
  return std::to_string(bytes) + " bytes of itself, more than " +
         std::to_string(limits::kIdentityBytes);
}

}  // namespace

Reason resolve_open_term(Turn& turn, const std::vector<MemberId>& members) {
  State& state = turn.state;
  const Layout& layout = *state.layout;
  const wire::DataFacts facts =
      turn.options.facts.open() ? kept_facts(layout.facts) : turn.options.facts;
  const wire::JobSpec job = with_batch(turn, members, facts.train_samples());
  if (!state.is_identity_stored)
    for (const IdentityEntry& entry : identity_of(job, facts)) turn.persist(entry);
  if (turn.options.is_script_open())
    for (const IdentityEntry& entry : layout.script) turn.persist(entry);
  state.is_identity_stored = true;
  return end_term(turn, what_is_known(turn.options, facts) + "; the run begins with it",
                  LogLine::Level::kInfo);
}

std::string malformed_script(const wire::Register& m) {
  std::string wrong = wrong_facts(m.facts());
  if (wrong.empty()) wrong = wrong_identity(m);
  for (const std::string& hash : {m.code_hash(), m.state_hash()})
    if (wrong.empty() && (hash.size() > limits::kScriptHashBytes || !is_printable_utf8(hash)))
      wrong = "a hash that is longer than " + std::to_string(limits::kScriptHashBytes) +
              " bytes or has control characters";
  return wrong;
}

}  // namespace lockstep::coordinator
