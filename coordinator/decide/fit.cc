// Whether a process fits the run and its members: one list of what must be alike.
#include <algorithm>
#include <map>

#include "comm/base/planted_bug.h"
#include "comm/base/text/printable.h"
#include "comm/run/checkpoint/numerics.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/identity.h"

namespace lockstep::coordinator {
namespace {

// Two values that must be alike, and what becomes of a newcomer whose value is another one.
struct Comparison {
  std::string what;
  std::string mine;    // of the run, or of the member that set it
  std::string theirs;  // of the newcomer
  int code = 0;
  Reason reason{};
  std::string verb;  // what the newcomer does otherwise: "reads other data than this run"
  std::string advice;
};
using Comparisons = std::vector<Comparison>;

constexpr char kTrialLine[] = "trial";  // of a script: a hash of its first slot

// Tells the newcomer first, then all others. No newcomer may hold the door shut for the rest once
// training is under way. In an open term none is.
Reason refuse_misfit(Turn& turn, ConnectionId connection, Reason reason, int code,
                     const std::string& why) {
  say_goodbye(turn, connection, code, why);
  if ((is_first_start(turn) && turn.state.source_generation == 0) ||
      turn.options.is_script_open()) {
    end_run(turn, code, why);
    return reason;
  }
  turn.actions.push_back(CloseConnection{connection});
  turn.note(LogLine::Level::kWarn, "worker_refused", why + "; the run goes on without it");
  return Reason::kRefusedMisfit;
}

// A value on one line, or the part of a long value that begins to differ from the other.
std::string shown(const std::string& value, const std::string& other) {
  constexpr size_t kShown = 160;
  constexpr size_t kBefore = 40;
  const auto differs = std::mismatch(value.begin(), value.end(), other.begin(), other.end()).first;
  const auto at = static_cast<size_t>(differs - value.begin());
  const size_t begin = value.size() <= kShown || at <= kBefore ? 0 : at - kBefore;
  std::string text = printable(value.substr(begin, kShown));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return (begin == 0 ? "" : "…") + text + (begin + kShown < value.size() ? "…" : "");
}

// All that differ for the reason of the first one; names at most three.
std::string sentence(const Comparisons& differing) {
  constexpr size_t kNamed = 3;
  std::string text;
  size_t count = 0;
  for (const Comparison& each : differing) {
    if (each.reason != differing[0].reason || each.verb != differing[0].verb) continue;
    if (++count > kNamed) continue;
    text += (count == 1 ? "" : "; ") + each.what + " is " + shown(each.mine, each.theirs) +
            " in this run and " + shown(each.theirs, each.mine) + " there";
  }
  if (count > kNamed) text += "; and " + std::to_string(count - kNamed) + " more differ";
  return text;
}

std::string or_nothing(const std::map<std::string, std::string>& lines, const std::string& key) {
  const auto found = lines.find(key);
  return found == lines.end() ? "(nothing)" : found->second;
}

std::map<std::string, std::string> by_key(const std::vector<std::string>& lines) {
  std::map<std::string, std::string> map;
  for (const std::string& line : lines) {
    const size_t at = line.find('=');
    std::string& value = map[line.substr(0, at)];
    if (at != std::string::npos) value += (value.empty() ? "" : ", ") + line.substr(at + 1);
  }
  return map;
}

void add_facts(const wire::DataFacts& run, const wire::DataFacts& seen, bool of_script,
               const std::string& verb, const std::string& advice, Comparisons& list) {
  const auto add = [&](const char* what, const std::string& mine, const std::string& theirs) {
    list.push_back({what, mine, theirs, 65, Reason::kEndedFacts, verb, advice});
  };
  add(of_script ? "the fingerprint of the training data" : "the fingerprint of data.train",
      run.train_fingerprint(), seen.train_fingerprint());
  add(of_script ? "the fingerprint of the evaluation data" : "the fingerprint of data.eval",
      run.eval_fingerprint(), seen.eval_fingerprint());
  add("the number of training samples", std::to_string(run.train_samples()),
      std::to_string(seen.train_samples()));
  add("the number of phases of a batch", std::to_string(std::max(1u, run.turns())),
      std::to_string(std::max(1u, seen.turns())));
  add("the number of evaluation samples", std::to_string(run.eval_samples()),
      std::to_string(seen.eval_samples()));
}

void add_identity(const std::vector<IdentityEntry>& run, const wire::Register& m,
                  const std::string& verb, const std::string& advice, Comparisons& list) {
  for (const IdentityDifference& d : identity_diff(run, script_identity(m)))
    list.push_back({d.key, d.stored, d.wanted, 64, Reason::kEndedScript, verb, advice});
}

// As long as the run's facts are open, the first member of the term speaks for all later ones.
void add_open(const Turn& turn, const wire::Register& m, Comparisons& list) {
  const State& state = turn.state;
  if (!turn.options.is_script_open() || !state.layout || LOCKSTEP_BUG(kOpenNotCompared)) return;
  const Layout& layout = *state.layout;
  const std::string first = describe(state, turn.state.members.at(layout.member));
  add_facts(layout.facts, m.facts(), true, "reads other data than " + first,
            "Give every worker the same data: compare the files that it reads, and let no sample "
            "depend on the time, the machine or the order of a set",
            list);
  add_identity(
      layout.script, m, "trains something else than " + first,
      "Give every node the same script, arguments and libraries, and let the script depend "
      "on nothing else",
      list);
}

// Compares with what the journal knows of the run.
void add_stored(const Turn& turn, const wire::Register& m, Comparisons& list) {
  const Options& options = turn.options;
  if (options.facts.open()) return;
  const bool of_script = is_script(options.job.model());
  const bool is_known = of_script && !options.is_script_open();
  add_facts(options.facts, m.facts(), of_script, "reads other data than this run",
            is_known ? "What identifies a run cannot change: give every worker the data set of the "
                       "run, or start a new run in another --run-dir"
                     : "Give every node the same data set",
            list);
  if (!is_known) return;
  add_identity(options.script, m, "trains something else than this run",
               "What identifies a run cannot change: leave it in the script as it was in this run, "
               "or start a new run in another --run-dir",
               list);
}

// Compares what all processes of a script have in common before they compute anything: in fast
// mode, too, where no results are compared.
void add_hashes(const Turn& turn, const wire::Register& m, Comparisons& list) {
  if (!is_script(turn.options.job.model())) return;
  const State& state = turn.state;
  if (!state.code_hash.empty()) {
    list.push_back({"the hash of the script and of its modules", state.code_hash, m.code_hash(), 64,
                    Reason::kEndedScript, "runs other code than this run",
                    "The file of the script, or a module below its folder, was changed, or is "
                    "another one on that node: put it back, or stop the run and resume it, so that "
                    "all workers run the new code"});
  }
  if (!state.state_hash.empty()) {
    list.push_back(
        {"the hash of the weights, buffers and all else that run.keep() was given, as the script "
         "made it,",
         state.state_hash, m.state_hash(), 64, Reason::kEndedScript,
         "begins with other values than this run",
         "Something there comes out different in each process: it is made before "
         "lockstep.start(), seeded by the time, drawn from a generator of its own, read in the "
         "order of a set or from another file, or left unfilled (torch.empty). Make it after "
         "start(), from the default generators of torch, numpy or random, or load it from one "
         "file"});
  }
}

void add_largest_slot(const Turn& turn, const wire::Register& m, Comparisons& list) {
  if (!turn.options.is_batch_open() || m.largest_slot() != 0) return;
  list.push_back({"the largest slot that fits into its memory", "measured", "not measured", 78,
                  Reason::kEndedLayout, "does not say what train.global_batch auto needs",
                  "It runs another version of lockstep: install one version on all nodes"});
}

// NCCL connects no two workers on one GPU, nor on two slices (MIG) of one GPU. A member at the
// newcomer's own place does not count: the newcomer is there in its stead.
void add_shared_gpu(const Turn& turn, const wire::Register& newcomer, Comparisons& list) {
  if (turn.options.job.comm().backend() != "nccl" || newcomer.gpu().pci().empty()) return;
  for (const auto& [id, member] : turn.state.members) {
    const bool is_its_place =
        member.node == newcomer.node() && member.local_rank == newcomer.local_rank();
    if (!is_alive(member) || is_its_place || member.gpu.pci() != newcomer.gpu().pci() ||
        member.data.host_id() != newcomer.data().host_id())
      continue;
    const std::string& gpu = newcomer.gpu().pci();
    const bool is_sliced = member.gpu.uuid() != newcomer.gpu().uuid();
    list.push_back({"GPU " + gpu, "in use by " + describe(turn.state, member),
                    is_sliced ? "wanted, on another MIG slice of it," : "wanted, too,", 78,
                    Reason::kEndedSharedGpu, "computes on a GPU that another worker has",
                    "NCCL connects whole GPUs, each once: give every worker a GPU of its own, take "
                    "fewer workers, or set comm.backend: host"});
    return;
  }
}

constexpr char kPartAdvice[] =
    "Their GPUs are of one model, but one of them is a part of a GPU: MPS with "
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, or a MIG slice. Give all workers the same share, or take "
    "comm.numerics=fast in a new run";
constexpr char kTrialAdvice[] =
    "Their machines and libraries say the same, and so do the values that they begin with, but the "
    "first slot came out different: let the loop's body and the data set depend on nothing but the "
    "batch, what is kept, run.step and the default generators (not on the time, the machine, the "
    "order of a set or another file). If nothing of that is so, the processors differ: use "
    "machines of one kind";
constexpr char kKindAdvice[] =
    "Use machines and libraries of one kind, or comm.numerics=fast in a new run";

// Compares what decides the bits. The first member of a term speaks for all later ones.
void add_numerics(const Turn& turn, const wire::Register& m, Comparisons& list) {
  if (!turn.options.exact() || !turn.state.layout) return;
  const Layout& layout = *turn.state.layout;
  const std::string verb =
      "would compute other bits than " + describe(turn.state, turn.state.members.at(layout.member));
  const auto mine = by_key(layout.fingerprint);
  const auto theirs = by_key(fingerprint_of(m));
  std::map<std::string, std::string> keys = mine;
  keys.insert(theirs.begin(), theirs.end());
  const auto differs = [&](const std::string& key) {
    return or_nothing(mine, key) != or_nothing(theirs, key);
  };
  const bool is_trial_alone =
      differs(kTrialLine) && std::none_of(keys.begin(), keys.end(), [&](const auto& entry) {
        return entry.first != kTrialLine && differs(entry.first);
      });
  // One model with another number of multiprocessors: a part of a GPU.
  const bool is_part = differs("gpu_processors") && !differs("gpu") && !differs("gpu_capability");
  const char* const advice = is_part ? kPartAdvice : is_trial_alone ? kTrialAdvice : kKindAdvice;
  for (const auto& [key, value] : keys)
    list.push_back({key, or_nothing(mine, key), or_nothing(theirs, key), 78,
                    Reason::kEndedFingerprint, verb, advice});
}

void add_layout(const Turn& turn, const wire::Register& m, Comparisons& list) {
  if (!turn.state.layout) return;
  const Layout& layout = *turn.state.layout;
  const std::string verb = "has another gradient layout than " +
                           describe(turn.state, turn.state.members.at(layout.member));
  const std::vector<uint64_t> bounds(m.tensor_bounds().begin(), m.tensor_bounds().end());
  const char* advice = "They run different versions of lockstep: install one version on all nodes";
  list.push_back({"the number of elements", std::to_string(layout.flat_elements),
                  std::to_string(m.flat_elements()), 78, Reason::kEndedLayout, verb, advice});
  list.push_back({"where tensors begin", "as planned",
                  bounds == layout.tensor_bounds ? "as planned" : "elsewhere", 78,
                  Reason::kEndedLayout, verb, advice});
}

// The first member of a term speaks for all later ones: they must be like it.
Reason check_as_before(Turn& turn, ConnectionId connection, const wire::Register& m) {
  const std::string differs = numerics_difference(fingerprint_of(m), turn.state.base_fingerprint);
  if (turn.state.layout || !turn.options.exact() || differs.empty()) return Reason::kRegistered;
  const std::string what = name_of(m) + " computes other bits than the run did before: " + differs;
  if (turn.options.job.comm().other_numerics() != "continue") {
    const bool is_trial = differs.starts_with(std::string(kTrialLine) + "=");
    return refuse_misfit(
        turn, connection, Reason::kEndedFingerprint, 78,
        what +
            (is_trial ? ". The script computes its first slot otherwise: it was changed, or "
                        "depends on more than the batch and what is kept, or the processor is "
                        "another one. Resume with the script and the machine of before"
                      : ". Resume on a machine of the same kind") +
            ", or accept other bits from here on with comm.other_numerics=continue");
  }
  turn.note(LogLine::Level::kWarn, "other_numerics",
            what + "; it goes on (comm.other_numerics is continue)");
  return Reason::kRegistered;
}

}  // namespace

std::string name_of(const wire::Register& m) {
  return "worker " + std::to_string(m.local_rank()) + " on " + m.node() + " (pid " +
         std::to_string(m.pid()) + ")";
}

std::vector<std::string> fingerprint_of(const wire::Register& m) {
  return {m.fingerprint().lines().begin(), m.fingerprint().lines().end()};
}

Reason check_fit(Turn& turn, ConnectionId connection, const wire::Register& m) {
  Comparisons list;
  add_stored(turn, m, list);
  add_open(turn, m, list);
  add_hashes(turn, m, list);
  add_largest_slot(turn, m, list);
  add_shared_gpu(turn, m, list);
  add_numerics(turn, m, list);
  add_layout(turn, m, list);
  std::erase_if(list, [](const Comparison& each) { return each.mine == each.theirs; });
  if (list.empty()) return check_as_before(turn, connection, m);
  const Comparison& first = list[0];
  return refuse_misfit(turn, connection, first.reason, first.code,
                       name_of(m) + " " + first.verb + ": " + sentence(list) + ". " + first.advice);
}

void note_script(Turn& turn, const wire::Register& m) {
  const auto note = [&](std::string& known, const std::string& told, const char* key) {
    if (!known.empty() || told.empty()) return;
    known = told;
    turn.persist(SettingEntry{key, told});
  };
  note(turn.state.code_hash, m.code_hash(), kCodeSetting);
  note(turn.state.state_hash, m.state_hash(), kStateSetting);
}

}  // namespace lockstep::coordinator
