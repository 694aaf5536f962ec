// Judges the checks for silent corruption (corruption.h).
#include <algorithm>

#include "comm/run/evaluation/check_after.h"
#include "comm/run/job/predictions.h"
#include "coordinator/decide/check_finding.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/corruption.h"

namespace lockstep::coordinator {
namespace {

bool all_have_reported(const State& state, const PendingCheck& check) {
  return std::all_of(check.members.begin(), check.members.end(), [&](MemberId id) {
    return check.reports.contains(id) || !is_alive(state.members.at(id));
  });
}

// Every member that still can has reported. For a generation that is over, a lease is the limit.
bool is_ripe(const Turn& turn, Generation generation, const PendingCheck& check) {
  const bool is_over = generation != turn.state.source_generation;
  if (is_over && turn.now_ms - check.since_ms > turn.options.lease_ms) return true;
  return all_have_reported(turn.state, check);
}

// A member that is alone agrees with itself, if it has computed something twice.
bool proves_agreement(const State& state, const PendingCheck& check) {
  const bool is_alone = check.members.size() == 1;
  const bool is_told = check.reports.size() > 1 || (is_alone && !check.reports.empty() &&
                                                    check.reports.begin()->second.has_again());
  return is_told && all_have_reported(state, check);
}

// Where work is compared, too, members may hold the same wrong weights: one of them has computed
// wrong for all since the check before. So equal weights alone are nothing to go back to.
bool compares_all(const Turn& turn, const PendingCheck& check) {
  if (!compares_work(turn.options)) return true;
  return std::any_of(check.reports.begin(), check.reports.end(),
                     [](const auto& e) { return e.second.has_gradient() || e.second.has_sum(); });
}

std::set<MemberId> copies_in(const State& state, const PendingCheck& check) {
  const Step agreed = std::max(state.checks.agreed, state.checks.same_weights);
  std::set<MemberId> copies;
  for (const auto& [id, report] : check.reports) {
    const std::optional<Step>& copied_at = state.members.at(id).copied_at;
    if (copied_at && *copied_at > agreed) copies.insert(id);
  }
  return copies;
}

void keep_agreement(Turn& turn, Generation generation, Step step) {
  State& state = turn.state;
  state.checks.agreed = step;
  turn.persist(CheckEntry{generation, step, true, {}, 0, false});
  std::erase_if(state.pending_checks, [step](const auto& e) { return e.first.second <= step; });
}

// No majority tells who is right. When the step is computed again, these values may tell it.
void keep_witnesses(Turn& turn, Generation generation, Step step, const CheckFinding& finding) {
  CheckHistory& checks = turn.state.checks;
  checks.unexplained.insert(step);
  turn.persist(CheckEntry{generation, step, false, {}, 0, false});
  for (const auto& [id, value] : finding.voices()) {
    const Member& member = turn.at(id);
    WitnessEntry witness{generation, step, finding.subject, member.node, member.local_rank, value};
    turn.persist(witness);
    checks.witnesses.push_back(std::move(witness));
  }
  std::stable_sort(checks.witnesses.begin(), checks.witnesses.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
}

std::string way_back(const State& state) {
  const Step agreed = state.checks.agreed;
  return agreed == 0 ? "the run goes back to its initial weights: no check before had found all in "
                       "agreement"
                     : "the run goes back to the newest checkpoint at or before step " +
                           std::to_string(agreed) + ", after which all still agreed";
}

void distrust(Turn& turn) {
  State& state = turn.state;
  state.checks.is_open = true;
  forget_checkpoints_after(state, state.checks.agreed);
  void_written(turn, [](const WrittenCheckpoint&) { return true; });
}

// The usual reasons for which a loop in Python computes something else in one process.
constexpr char kCausesInScripts[] =
    "the script's loop keeps state that keep() does not know, draws from a random generator of its "
    "own, or goes by the order of a set";

// In a script, the loop itself is likelier to differ than a machine. It has no part in sums, which
// Lockstep adds up itself.
bool may_be_the_script(const Turn& turn, CheckSubject subject) {
  return is_script(turn.options.job.model()) && subject != CheckSubject::kSum;
}

std::string cause_of_a_difference(const Turn& turn, CheckSubject subject) {
  std::string machine = "a memory or a processor there is at fault, and nothing reported an error";
  if (!may_be_the_script(turn, subject)) return machine;
  return std::string("most likely ") + kCausesInScripts + "; if it does not, " + machine;
}

std::string accusation(const Turn& turn, const CheckFinding& finding) {
  const std::string jury = finding.by_witness
                               ? counted(finding.votes, "result") + " of both attempts at this step"
                               : counted(finding.votes, "worker");
  std::string text = describe(turn.state, finding.odd()) + " " + finding.what + " than " + jury +
                     " that agree: " + cause_of_a_difference(turn, finding.subject);
  if (!finding.wrong_then.empty()) {
    text += "; in the attempt before, " + names_of(finding.wrong_then) + " had " +
            other_result(finding.subject);
  }
  return text;
}

std::string put_out(const Turn& turn, CheckSubject subject) {
  return std::string(". No worker of that place takes part in the run any more; ") +
         (may_be_the_script(turn, subject) ? "look at the script, then test that machine. "
                                           : "test that machine. ");
}

Reason go_back(Turn& turn, Generation generation, Step step, const CheckFinding& finding) {
  const std::string what = accusation(turn, finding);
  for (MemberId id : finding.odd()) expel(turn, place_of(turn.at(id)), {generation, step, false});
  for (const WitnessEntry& w : finding.wrong_then) {
    expel(turn, place_of(w), {w.generation, step, false});
  }
  distrust(turn);
  turn.note(LogLine::Level::kError, "corruption",
            what + put_out(turn, finding.subject) + "Meanwhile " + way_back(turn.state));
  return end_term(turn, "a worker computed wrong; " + way_back(turn.state));
}

// The wrong worker goes like one that died. Since the last agreement its part may be in everything.
Reason go_on(Turn& turn, Generation generation, const CheckFinding& finding) {
  CheckHistory& checks = turn.state.checks;
  const Step since = checks.agreed + 1;
  const std::string what = accusation(turn, finding);
  for (MemberId id : finding.odd()) {
    const Place place = place_of(turn.at(id));
    expel(turn, place, {generation, since, true});
    disown_checkpoints(turn, place, since);
  }
  for (const WitnessEntry& w : finding.wrong_then) {
    expel(turn, place_of(w), {w.generation, since, true});
  }
  void_written(turn, [&](const WrittenCheckpoint& written) {
    return is_expelled(turn.state, turn.at(written.member));
  });
  checks.tainted = std::min(checks.tainted.value_or(since), since);
  turn.note(
      LogLine::Level::kError, "corruption",
      what + put_out(turn, finding.subject) +
          "The others go on with what they hold (train.on_corruption is continue): from step " +
          std::to_string(since) + " on it may be wrong, and the audit says so");
  return evict_expelled(turn).value_or(Reason::kExpelled);
}

// A member that is alone has got two results. When the step is computed again, that tells nothing
// of this attempt.
Reason judge_alone(Turn& turn, Generation generation, Step step, const CheckFinding& finding) {
  CheckHistory& checks = turn.state.checks;
  const bool is_again = !checks.unexplained.insert(step).second;
  turn.persist(CheckEntry{generation, step, false, {}, 0, false});
  distrust(turn);
  const std::string what = describe(turn.state, finding.odd()) + " " + finding.what + ": " +
                           cause_of_a_difference(turn, finding.subject) + "; test that machine";
  turn.note(LogLine::Level::kError, "corruption", what);
  if (!is_again) return end_term(turn, "the only worker computes wrong; " + way_back(turn.state));
  end_run(turn, 70, what + ". It did so in this step before; " + what_remains(turn));
  return Reason::kEndedCorruption;
}

std::string what_to_do_about_a_difference(const Turn& turn, CheckSubject subject) {
  if (may_be_the_script(turn, subject))
    return ". They differed there before. Give all that the loop changes to keep(), and let "
           "Lockstep seed what it draws. If it does so already, one of these machines computes "
           "wrong: test their memory. Then resume; ";
  return ". They differed there before: one of these machines computes wrong. Test their memory, "
         "leave the bad one out and resume; ";
}

Reason judge_unexplained(Turn& turn, Generation generation, Step step,
                         const CheckFinding& finding) {
  const bool is_again = turn.state.checks.unexplained.contains(step);
  keep_witnesses(turn, generation, step, finding);
  distrust(turn);
  const std::string what =
      describe(turn.state, finding.odd()) + " differ: each " + finding.what +
      " than another, and no majority says who is right" +
      (may_be_the_script(turn, finding.subject) ? std::string(". Most likely ") + kCausesInScripts
                                                : "");
  turn.note(LogLine::Level::kError, "corruption", what);
  if (is_again) {
    end_run(turn, 70,
            what + what_to_do_about_a_difference(turn, finding.subject) + what_remains(turn));
    return Reason::kEndedCorruption;
  }
  return end_term(turn, "the workers differ and nobody is evicted; " + way_back(turn.state) +
                            ", and when step " + std::to_string(step) +
                            " is computed again, its results tell who was wrong");
}

Reason judge(Turn& turn, Generation generation, Step step, CheckFinding finding) {
  if (finding.is_alone) return judge_alone(turn, generation, step, finding);
  std::map<MemberId, Place> places;
  for (const auto& [id, value] : finding.values) places[id] = place_of(turn.at(id));
  ask_witnesses(turn.state.checks.witnesses, step, places, &finding);
  if (!finding.right) return judge_unexplained(turn, generation, step, finding);
  // Copies of the wrong weights are on machines that did nothing wrong: they cannot go on.
  if (turn.options.job.train().on_corruption() == "continue" && !finding.has_wrong_copy()) {
    return go_on(turn, generation, finding);
  }
  return go_back(turn, generation, step, finding);
}

// All agree, so a member that differed in an earlier attempt was wrong then. All that its wrong
// result got into has left the lineage since.
std::optional<Reason> judge_witnesses(Turn& turn, Step step, const PendingCheck& check) {
  const auto& witnesses = turn.state.checks.witnesses;
  auto wrong = refuted(witnesses, step, check);
  const bool was_open = std::any_of(witnesses.begin(), witnesses.end(),
                                    [step](const auto& w) { return w.step == step; });
  if (was_open && wrong.empty()) {
    const std::string why = compares_work(turn.options)
                                ? " on a result that none of them had before: the error had spread "
                                  "to all"
                                : ", and with comm.numerics fast that does not tell who was wrong";
    turn.note(LogLine::Level::kWarn, "corruption",
              "step " + std::to_string(step) + " was computed again, and all workers agree" + why +
                  ". It is undone, but Lockstep cannot tell whose it was; test the machines");
    return std::nullopt;
  }
  std::erase_if(wrong, [&](const WitnessEntry& w) {
    return turn.state.checks.expelled.contains(place_of(w));
  });
  if (wrong.empty()) return std::nullopt;
  for (const WitnessEntry& w : wrong) {
    expel(turn, place_of(w), {w.generation, step, false});
  }
  turn.note(LogLine::Level::kError, "corruption",
            "step " + std::to_string(step) + " was computed again, and all workers agree; " +
                names_of(wrong) + " had " + other_result(wrong.front().subject) +
                " before: " + cause_of_a_difference(turn, wrong.front().subject) +
                put_out(turn, wrong.front().subject) +
                "The others go on; they need not compute anything again");
  return evict_expelled(turn).value_or(Reason::kExpelled);
}

}  // namespace

Reason on_check(Turn& turn, Member& member, Generation generation,
                const wire::CheckReport& message) {
  State& state = turn.state;
  const Step step = message.applied();
  const bool has_work = message.has_gradient() || message.has_sum() || message.has_again();
  const bool may_have_work =
      compares_work(turn.options) &&
      check_after(step, turn.options.job, possible_ends(turn.options, state.script_end));
  if (!is_checking(turn.options) || step == 0 || step > turn.options.total_steps ||
      (has_work && !may_have_work)) {
    return Reason::kRefusedMalformed;
  }
  if (step <= state.checks.agreed) return Reason::kAlreadyCounted;
  auto check = state.pending_checks.find({generation, step});
  if (check == state.pending_checks.end()) {
    // The members of an older generation are not known any more.
    if (!is_open(state.run) || generation != state.source_generation) return Reason::kIgnored;
    PendingCheck first{turn.now_ms, state.source_members, {}, {}};
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
    PendingCheck check = std::move(ripe->second);
    state.pending_checks.erase(ripe);
    if (!is_in_lineage(state, generation, step)) continue;
    // The reports of an expelled member count no more.
    std::erase_if(check.reports,
                  [&](const auto& e) { return is_expelled(state, state.members.at(e.first)); });
    check.copies = copies_in(state, check);
    CheckFinding finding = examine(check, step);
    if (finding.is_difference()) return judge(turn, generation, step, std::move(finding));
    if (!proves_agreement(state, check)) continue;
    if (compares_all(turn, check)) {
      keep_agreement(turn, generation, step);
    } else {
      state.checks.same_weights = std::max(state.checks.same_weights, step);
    }
    settle_checkpoints(turn);
    reason = Reason::kChecked;
    if (const auto follows = judge_witnesses(turn, step, check)) return follows;
  }
}

}  // namespace lockstep::coordinator
