#include "coordinator/corruption.h"

#include <algorithm>

#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

using Values = std::map<MemberId, uint64_t>;

// What members differ in, and who is at fault; empty `odd`: they agree.
struct Finding {
  std::vector<MemberId> odd;
  bool is_outvoted = false;  // else nobody can tell who of `odd` is right
  size_t right = 0;          // how many outvoted them
  std::string what;          // "worker A <what> than the others"
};

Finding compare(const Values& values, std::string what) {
  std::map<uint64_t, size_t> votes;
  for (const auto& [member, value] : values) ++votes[value];
  Finding finding;
  if (votes.size() <= 1) return finding;
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  finding.is_outvoted = most->second * 2 > values.size();
  finding.right = finding.is_outvoted ? most->second : 0;
  for (const auto& [member, value] : values) {
    if (!finding.is_outvoted || value != most->first) finding.odd.push_back(member);
  }
  finding.what = std::move(what);
  return finding;
}

// Wrong weights make everything else wrong, and a wrong gradient comes before its sum.
Finding examine(const PendingCheck& check, Step step) {
  Values weights;
  Values gradients;
  Values sums;
  uint32_t slot = 0;
  uint32_t slice = 0;
  for (const auto& [member, report] : check.reports) {
    weights[member] = report.weights_hash();
    if (report.has_gradient()) {
      gradients[member] = report.gradient_hash();
      slot = report.slot();
    }
    if (report.has_sum()) {
      sums[member] = report.sum_hash();
      slice = report.sum_rank();
    }
  }
  const std::string at = std::to_string(step);
  Finding finding = compare(weights, "holds other weights after step " + at);
  if (finding.odd.empty()) {
    finding = compare(
        gradients, "computed another gradient of slot " + std::to_string(slot) + " in step " + at);
  }
  if (finding.odd.empty()) {
    finding = compare(sums, "added up another sum, of the slice of rank " + std::to_string(slice) +
                                " in step " + at + ",");
  }
  return finding;
}

// Everybody who still can has reported; of a generation that is over nothing more is waited for
// beyond a lease.
bool is_ripe(const Turn& turn, Generation generation, const PendingCheck& check) {
  const State& state = turn.state;
  const bool is_over = generation != state.source_generation;
  if (is_over && turn.now_ms - check.since_ms > turn.options.lease_ms) return true;
  return std::all_of(check.members.begin(), check.members.end(), [&](MemberId id) {
    return check.reports.contains(id) || !is_alive(state.members.at(id));
  });
}

bool is_whole(const State& state, const PendingCheck& check) {
  return check.reports.size() > 1 &&
         std::all_of(check.members.begin(), check.members.end(), [&](MemberId id) {
           return check.reports.contains(id) || !is_alive(state.members.at(id));
         });
}

void keep_agreement(Turn& turn, Generation generation, Step step) {
  State& state = turn.state;
  if (step <= state.checks.agreed) return;
  state.checks.agreed = step;
  turn.persist(CheckEntry{generation, step, true, {}, 0, false});
  std::erase_if(state.pending_checks, [step](const auto& e) { return e.first.second <= step; });
}

// Who was outvoted is put out; that they differed is kept in any case.
void keep_difference(Turn& turn, Generation generation, Step step, const Finding& finding) {
  CheckHistory& checks = turn.state.checks;
  checks.is_open = true;
  if (!finding.is_outvoted) {
    checks.unexplained.insert(step);
    turn.persist(CheckEntry{generation, step, false, {}, 0, false});
    return;
  }
  for (MemberId id : finding.odd) {
    const Member& member = turn.at(id);
    checks.expelled.insert({member.node, member.local_rank});
    turn.persist(CheckEntry{generation, step, false, member.node, member.local_rank, false});
  }
}

std::string way_back(const State& state) {
  const Step agreed = state.checks.agreed;
  return agreed == 0 ? "the run goes back to its initial weights: no check before had found all in "
                       "agreement"
                     : "the run goes back to the newest checkpoint at or before step " +
                           std::to_string(agreed) + ", after which all still agreed";
}

Reason judge_outvoted(Turn& turn, const Finding& finding) {
  const std::string what = describe(turn.state, finding.odd) + " " + finding.what + " than " +
                           counted(finding.right, "worker") +
                           " that agree: a memory or a processor there is at fault, and nothing "
                           "reported an error";
  turn.note(LogLine::Level::kError, "corruption",
            what +
                ". No worker of that place takes part in the run any more; have the machine "
                "tested. Meanwhile " +
                way_back(turn.state));
  return end_term(turn, "a worker computed wrong; " + way_back(turn.state));
}

Reason judge_unexplained(Turn& turn, const Finding& finding, bool is_again) {
  const std::string what = describe(turn.state, finding.odd) + " differ: each " + finding.what +
                           " than another, and no majority says who is right";
  turn.note(LogLine::Level::kError, "corruption", what);
  if (is_again) {
    end_run(turn, 70,
            what +
                ". They differed there before: one of these machines computes wrong. Test their "
                "memory, leave the bad one out and resume; " +
                what_remains(turn));
    return Reason::kEndedCorruption;
  }
  return end_term(turn, "the workers differ and nobody is put out; " + way_back(turn.state) +
                            ", and ends if they differ there again");
}

Reason judge(Turn& turn, Generation generation, Step step, const Finding& finding) {
  State& state = turn.state;
  const bool is_again = !finding.is_outvoted && state.checks.unexplained.contains(step);
  keep_difference(turn, generation, step, finding);
  // The next term takes none of these, and nobody is to be told that they remain.
  std::erase_if(state.checkpoints,
                [&](const CheckpointEntry& c) { return c.step > state.checks.agreed; });
  return finding.is_outvoted ? judge_outvoted(turn, finding)
                             : judge_unexplained(turn, finding, is_again);
}

}  // namespace

bool is_checking(const Options& options) {
  return options.job.train().check_every() > 0 && options.exact();
}

CheckHistory check_history(const JournalContents& contents) {
  CheckHistory history;
  for (const CheckEntry& check : contents.checks) {
    if (check.agreed) {
      if (!check.rolled_back) history.agreed = std::max(history.agreed, check.step);
      continue;
    }
    history.is_open = history.is_open || !check.rolled_back;
    if (check.node.empty()) {
      history.unexplained.insert(check.step);
    } else {
      history.expelled.insert({check.node, check.local_rank});
    }
  }
  return history;
}

std::optional<Step> newest_trusted(const JournalContents& contents) {
  const CheckHistory history = check_history(contents);
  return history.is_open ? std::optional<Step>(history.agreed) : std::nullopt;
}

Reason on_check(Turn& turn, Member& member, Generation generation,
                const wire::CheckReport& message) {
  State& state = turn.state;
  const uint64_t every = turn.options.job.train().check_every();
  const Step step = message.applied();
  if (!is_checking(turn.options) || step == 0 || step % every != 0 ||
      step > turn.options.total_steps) {
    return Reason::kRefusedMalformed;
  }
  if (step <= state.checks.agreed) return Reason::kAlreadyCounted;
  auto check = state.pending_checks.find({generation, step});
  if (check == state.pending_checks.end()) {
    // Who was in an older generation is not known any more.
    if (!is_open(state.run) || generation != state.source_generation) return Reason::kIgnored;
    PendingCheck first{turn.now_ms, state.source_members, {}};
    check = state.pending_checks.emplace(std::pair(generation, step), std::move(first)).first;
  }
  if (!contains(check->second.members, member.id)) return Reason::kRefusedMalformed;
  if (!check->second.reports.emplace(member.id, message).second) return Reason::kAlreadyCounted;
  return judge_checks(turn).value_or(Reason::kCheckCounted);
}

std::optional<Reason> judge_checks(Turn& turn) {
  State& state = turn.state;
  std::optional<Reason> reason;
  for (;;) {
    const auto ripe =
        std::find_if(state.pending_checks.begin(), state.pending_checks.end(),
                     [&](const auto& e) { return is_ripe(turn, e.first.first, e.second); });
    if (ripe == state.pending_checks.end()) return reason;
    const auto [generation, step] = ripe->first;
    const PendingCheck check = std::move(ripe->second);
    state.pending_checks.erase(ripe);
    if (!is_in_lineage(state, generation, step)) continue;
    const Finding finding = examine(check, step);
    if (!finding.odd.empty()) return judge(turn, generation, step, finding);
    if (!is_whole(state, check)) continue;
    keep_agreement(turn, generation, step);
    reason = Reason::kChecked;
  }
}

}  // namespace lockstep::coordinator
