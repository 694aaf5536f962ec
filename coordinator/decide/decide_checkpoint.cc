// A checkpoint counts once its manifest's hash is in the journal; only then may older ones go. The
// coordinator journals the hash when it has read the manifest itself: a writer that sees another
// directory would report checkpoints that are not there.
#include <algorithm>
#include <set>

#include "comm/base/planted_bug.h"
#include "comm/run/checkpoint/store.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/corruption.h"
#include "coordinator/state/evaluations.h"

namespace lockstep::coordinator {
namespace {

constexpr uint32_t kFewestKept = 2;
constexpr int64_t kLookAgainMs = 1'000;  // between two looks for a manifest
// Each look lists the directory, so a network file system shows soon what is there (store.h). It is
// shorter than cluster.grace_s, so that a stop tells the cause, too.
constexpr int64_t kUnseenMs = 20'000;
constexpr size_t kDroppedRemembered = 1024;

void remember_dropped(State& state, const std::string& name) {
  state.dropped.insert(name);
  while (state.dropped.size() > kDroppedRemembered) state.dropped.erase(state.dropped.begin());
}

void drop(Turn& turn, CheckpointEntry entry, wire::CheckpointAck* ack) {
  if (entry.state == CheckpointState::kComplete) entry.state = CheckpointState::kDropped;
  if (entry.state == CheckpointState::kDropped) remember_dropped(turn.state, entry.name);
  ack->add_drop(entry.name);
  turn.persist(std::move(entry));
}

// The first of more steps.
auto first_after(const std::vector<CheckpointEntry>& all, Step step) {
  return std::upper_bound(all.begin(), all.end(), step,
                          [](Step s, const CheckpointEntry& c) { return s < c.step; });
}

// The newest `keep`, and the checkpoints to which a run goes back if its members disagree or a step
// shows a bad loss: two for each, because a disk may damage the newer one. Reports of checkpoints
// overtake records, and a coordinator that was away gets many reports first: the bad step may
// follow any checkpoint whose steps are not complete.
std::vector<const CheckpointEntry*> to_go_back_to(const Turn& turn, size_t keep) {
  const State& state = turn.state;
  const std::vector<CheckpointEntry>& all = state.checkpoints;
  std::vector<const CheckpointEntry*> found;
  const auto newest_before = [&](auto end, size_t count) {
    const auto held = static_cast<size_t>(end - all.begin());
    for (size_t i = held - std::min(held, count); i < held; ++i) found.push_back(&all[i]);
  };
  const auto unjudged = first_after(all, state.completed);
  if (is_checking(turn.options)) newest_before(first_after(all, state.checks.agreed), kFewestKept);
  newest_before(unjudged, kFewestKept);
  newest_before(all.end(), LOCKSTEP_BUG(kUnjudgedDropped)
                               ? keep
                               : std::max(keep, static_cast<size_t>(all.end() - unjudged)));
  return found;
}

// With checkpoint.best: also the best checkpoint and the way to the best evaluation, for the whole
// lineage and for its part up to each checkpoint that stays, because a rollback to that checkpoint
// makes this part the lineage. A checkpoint whose evaluation is still on its way stays anyway,
// since its steps are not judged.
std::set<std::string> names_to_keep(const Turn& turn, size_t keep) {
  const State& state = turn.state;
  const std::vector<CheckpointEntry>& all = state.checkpoints;
  std::vector<const CheckpointEntry*> stay = to_go_back_to(turn, keep);
  std::set<std::string> names;
  const std::string& best = turn.options.job.checkpoint().best();
  const auto stay_until = [&](Step step) {
    const BestBy by = best_by(best);
    stay.push_back(best_checkpoint(all, state.evals, by, step));
    stay.push_back(LOCKSTEP_BUG(kWayToBestDropped) ? nullptr
                                                   : way_to_best(all, state.evals, by, step));
  };
  const bool keeps_best = lockstep::keeps_best(best);
  if (keeps_best) stay_until(kNoStep);
  for (size_t i = 0; i < stay.size(); ++i) {
    if (stay[i] == nullptr || !names.insert(stay[i]->name).second) continue;
    if (keeps_best && !LOCKSTEP_BUG(kBestUntilRollbackDropped)) stay_until(stay[i]->step);
  }
  return names;
}

void drop_older(Turn& turn, size_t keep, wire::CheckpointAck* ack) {
  std::vector<CheckpointEntry>& all = turn.state.checkpoints;
  const std::set<std::string> names = names_to_keep(turn, keep);
  std::vector<CheckpointEntry> stay;
  for (size_t i = 0; i < all.size(); ++i) {
    if (names.contains(all[i].name)) {
      stay.push_back(std::move(all[i]));
    } else {
      drop(turn, std::move(all[i]), ack);
    }
  }
  all = std::move(stay);
}

size_t number_kept(const Turn& turn) {
  return std::max(kFewestKept, turn.options.job.checkpoint().keep());
}

// Only the writer of the present generation deletes, and only what the journal names.
void acknowledge(Turn& turn, const Member& member, const wire::CheckpointReport& message,
                 bool may_drop) {
  State& state = turn.state;
  wire::Envelope envelope;
  wire::CheckpointAck* ack = envelope.mutable_checkpoint_ack();
  ack->set_name(message.name());
  if (may_drop && state.run == RunState::kStarted && member.id == state.writer) {
    drop_older(turn, number_kept(turn), ack);
    for (CheckpointEntry& entry : state.stray) drop(turn, std::move(entry), ack);
    state.stray.clear();
  }
  turn.send(member.connection, std::move(envelope));
}

// `what`: which one, and why it does not count.
Reason checkpoint_failed(Turn& turn, const Member& member, Generation generation,
                         const wire::CheckpointReport& message, const std::string& what) {
  State& state = turn.state;
  // The acknowledgement may be lost with a connection, then the report comes again.
  acknowledge(turn, member, message, false);
  const bool is_new = state.failed_names.insert(message.name()).second;
  const bool is_last =
      message.final() && generation == state.source_generation && state.run == RunState::kStarted;
  if (!is_new && !is_last) return Reason::kAlreadyCounted;
  ++state.failed_checkpoints;
  if (is_last) {
    turn.note(LogLine::Level::kInfo, "checkpoint_failed", what);
    end_run(turn, 70, "the last checkpoint failed: " + what + "; " + what_remains(turn));
    return Reason::kEndedCheckpointFailed;
  }
  turn.note(LogLine::Level::kWarn, "checkpoint_failed",
            what + "; training goes on, the older " + "checkpoints stay");
  return Reason::kCheckpointFailed;
}

bool is_stray(const State& state, const std::string& name) {
  return std::any_of(state.stray.begin(), state.stray.end(),
                     [&](const CheckpointEntry& c) { return c.name == name; });
}

// It never counts: the next writer that is told to delete deletes the file. `why`: what it is.
void make_stray(Turn& turn, const Member& member, CheckpointEntry entry, CheckpointState now,
                const char* event, const char* why) {
  State& state = turn.state;
  if (is_stray(state, entry.name)) return;
  entry.state = now;
  turn.persist(entry);
  turn.log(LogLine::Level::kInfo, event,
           "checkpoint " + entry.name + " of " + describe(state, member) + " " + why +
               " and will be deleted");
  state.stray.push_back(std::move(entry));
}

// Written in a generation whose row ends before it, or in one that left the lineage.
Reason take_void(Turn& turn, const Member& member, const wire::CheckpointReport& message,
                 CheckpointEntry entry) {
  make_stray(turn, member, std::move(entry), CheckpointState::kRolledBack, "checkpoint_void",
             "is no longer part of the run");
  acknowledge(turn, member, message, false);
  return Reason::kCheckpointVoid;
}

// Its writer was away for so long that later ones have taken its place. A run that went back to it
// may miss checkpoints that are deleted by now, such as its best one.
Reason take_late(Turn& turn, const Member& member, const wire::CheckpointReport& message,
                 CheckpointEntry entry) {
  remember_dropped(turn.state, entry.name);
  make_stray(turn, member, std::move(entry), CheckpointState::kDropped, "checkpoint_late",
             "was reported after later ones");
  acknowledge(turn, member, message, false);
  return Reason::kCheckpointLate;
}

// The acknowledgement that told its writer to delete it was lost with a connection.
Reason drop_again(Turn& turn, const Member& member, const wire::CheckpointReport& message,
                  CheckpointEntry entry) {
  State& state = turn.state;
  entry.state = CheckpointState::kDropped;
  if (!is_stray(state, entry.name)) state.stray.push_back(std::move(entry));
  acknowledge(turn, member, message, true);
  return Reason::kAlreadyCounted;
}

// Its manifest was not seen in time, or is another one than its writer reported.
Reason give_up_unseen(Turn& turn, const std::string& name, const std::string& error) {
  State& state = turn.state;
  const WrittenCheckpoint unseen = std::move(state.written.at(name));
  state.written.erase(name);
  const Member& member = turn.at(unseen.member);
  const std::string what = "the coordinator does not see checkpoint " + name + " of step " +
                           std::to_string(unseen.report.step()) + ", which " +
                           describe(state, member) + " has written (" + error + "); give all " +
                           "nodes one shared run directory at " + turn.options.run_dir;
  return checkpoint_failed(turn, member, unseen.generation, unseen.report, what);
}

// C4 (corruption.h). If a generation is over and no member can complete its check, no answer comes
// any more: its checkpoints count without one.
bool awaits_check(const Turn& turn, const WrittenCheckpoint& written) {
  const State& state = turn.state;
  const Step step = written.report.step();
  const Step agreed = std::max(state.checks.agreed, state.checks.same_weights);
  if (!is_checking(turn.options) || step <= agreed) return false;
  if (written.generation == state.source_generation) return state.source_members.size() > 1;
  return state.pending_checks.contains({written.generation, step});
}

CheckpointEntry entry_of(const WrittenCheckpoint& written) {
  const wire::CheckpointReport& message = written.report;
  return {message.name(),
          message.step(),
          written.generation,
          written.member,
          message.manifest_sha256(),
          message.weights_sha256(),
          message.bytes(),
          message.final(),
          CheckpointState::kComplete};
}

// It counts from here on.
Reason accept(Turn& turn, const WrittenCheckpoint& written) {
  State& state = turn.state;
  const wire::CheckpointReport& message = written.report;
  const Member& member = turn.at(written.member);
  const CheckpointEntry entry = entry_of(written);
  if (!is_in_lineage(state, written.generation, message.step())) {
    return take_void(turn, member, message, entry);
  }
  const bool is_present = written.generation == state.source_generation;
  const auto place = state.checkpoints.insert(first_after(state.checkpoints, entry.step), entry);
  if (!is_present && !names_to_keep(turn, number_kept(turn)).contains(entry.name)) {
    state.checkpoints.erase(place);
    return take_late(turn, member, message, entry);
  }
  if (!LOCKSTEP_BUG(kCheckpointNotKept)) turn.persist(entry);
  turn.log(LogLine::Level::kInfo, "checkpoint_written", "checkpoint " + entry.name);
  if (is_present && message.final() && !state.end_ms) state.end_ms = turn.now_ms;
  acknowledge(turn, member, message, is_present);
  return Reason::kCheckpointAccepted;
}

// Lets it count if it may.
Reason settle_checkpoint(Turn& turn, const std::string& name) {
  const auto it = turn.state.written.find(name);
  if (it == turn.state.written.end() || !it->second.is_read || awaits_check(turn, it->second))
    return Reason::kCheckpointWritten;
  const WrittenCheckpoint written = std::move(it->second);
  turn.state.written.erase(it);
  return accept(turn, written);
}

}  // namespace

const CheckpointEntry* newest_until(const State& state, Step step) {
  const auto after = first_after(state.checkpoints, step);
  return after == state.checkpoints.begin() ? nullptr : &*std::prev(after);
}

void drop_judged(Turn& turn, Step before) {
  const State& state = turn.state;
  const Member* writer = turn.find(state.writer);
  if (state.run != RunState::kStarted || writer == nullptr || writer->connection == 0) return;
  const std::vector<CheckpointEntry>& all = state.checkpoints;
  // An older one may go when a newer one is the newest whose steps are complete.
  const bool is_new = newest_until(state, before) != newest_until(state, state.completed);
  if (!is_new || all.size() <= number_kept(turn)) return;
  wire::Envelope envelope;
  wire::CheckpointAck* ack = envelope.mutable_checkpoint_ack();
  ack->set_name(all.back().name);
  drop_older(turn, number_kept(turn), ack);
  if (ack->drop_size() > 0) turn.send(writer->connection, std::move(envelope));
}

void note_lost_best(Turn& turn) {
  const State& state = turn.state;
  const std::string& metric = turn.options.job.checkpoint().best();
  if (!keeps_best(metric)) return;
  const EvalMark best = best_evaluation(state.evals, best_by(metric), state.resume.step);
  // Nothing is lost if a member holds that very state, because it writes the state now, or if the
  // writer lives, because it is at work.
  if (best.step == 0 || best.step >= state.resume.step || has_checkpoint_of(state, best.step))
    return;
  const auto era = state.lineage.find(state.evals.at(best.step).generation);
  if (era != state.lineage.end() &&
      std::find(state.ranks.begin(), state.ranks.end(), era->second.writer) != state.ranks.end())
    return;
  turn.note(LogLine::Level::kWarn, "best_checkpoint_lost",
            "the checkpoint of the best evaluation so far, that after step " +
                std::to_string(best.step) +
                ", was lost with its writer; if the run finds no better one until its end, "
                "lockstep run --resume --from-checkpoint best makes it again");
}

void forget_checkpoints_after(State& state, Step step) {
  std::erase_if(state.checkpoints, [step](const CheckpointEntry& c) { return c.step > step; });
}

Reason on_checkpoint(Turn& turn, Member& member, Generation generation,
                     const wire::CheckpointReport& message) {
  State& state = turn.state;
  const auto era = state.lineage.find(generation);
  if (era != state.lineage.end() && era->second.writer != 0 && era->second.writer != member.id) {
    return Reason::kRefusedNotWriter;
  }
  const auto name = parse_checkpoint_name(message.name());
  if (!name || name->step != message.step() || name->generation != generation ||
      name->member != member.id || message.step() > turn.options.total_steps) {
    return Reason::kRefusedMalformed;
  }
  if (!message.error().empty()) {
    return checkpoint_failed(turn, member, generation, message,
                             "the checkpoint of step " + std::to_string(message.step()) +
                                 " was not written by " + describe(state, member) + ": " +
                                 message.error());
  }
  if (message.manifest_sha256().empty()) return Reason::kRefusedMalformed;
  const auto same = [&](const CheckpointEntry& c) { return c.name == message.name(); };
  const bool is_present = generation == state.source_generation;
  if (std::any_of(state.checkpoints.begin(), state.checkpoints.end(), same)) {
    acknowledge(turn, member, message, is_present);
    return Reason::kAlreadyCounted;
  }
  if (state.written.contains(message.name())) return Reason::kAlreadyCounted;
  if (state.dropped.contains(message.name())) {
    return drop_again(turn, member, message,
                      entry_of({member.id, generation, message, false, turn.now_ms, turn.now_ms}));
  }
  if (is_present && !state.checkpoints.empty() && state.checkpoints.back().step > message.step()) {
    return Reason::kRefusedMalformed;  // steps never go back within a generation
  }
  state.written[message.name()] = {member.id, generation, message, false, turn.now_ms, turn.now_ms};
  turn.actions.push_back(ReadManifest{message.name()});
  return Reason::kCheckpointWritten;
}

void settle_checkpoints(Turn& turn) {
  std::vector<std::string> names;  // ascending by step, as names are
  for (const auto& [name, written] : turn.state.written) names.push_back(name);
  for (const std::string& name : names) settle_checkpoint(turn, name);
}

void void_written(Turn& turn, const std::function<bool(const WrittenCheckpoint&)>& is_void) {
  State& state = turn.state;
  for (const auto& [name, written] : state.written) {
    if (!is_void(written)) continue;
    CheckpointEntry entry = entry_of(written);
    entry.state = CheckpointState::kRolledBack;
    turn.persist(entry);
    state.stray.push_back(std::move(entry));
  }
  std::erase_if(state.written, [&](const auto& e) { return is_void(e.second); });
}

void void_checkpoints(Turn& turn, const std::function<bool(const CheckpointEntry&)>& is_gone) {
  State& state = turn.state;
  for (const CheckpointEntry& entry : state.checkpoints) {
    if (!is_gone(entry)) continue;
    state.stray.push_back(entry);
    state.stray.back().state = CheckpointState::kRolledBack;
    turn.persist(state.stray.back());
  }
  std::erase_if(state.checkpoints, is_gone);
}

Reason on_manifest_read(Turn& turn, const ManifestRead& event) {
  State& state = turn.state;
  const auto it = state.written.find(event.name);
  const bool is_over = state.run == RunState::kEnded || state.run == RunState::kTermEnded;
  if (is_over || it == state.written.end() || it->second.is_read) return Reason::kIgnored;
  WrittenCheckpoint& written = it->second;
  if (event.sha256 == written.report.manifest_sha256()) {
    written.is_read = true;
    return settle_checkpoint(turn, event.name);
  }
  if (turn.now_ms - written.since_ms <= kUnseenMs) return Reason::kCheckpointWritten;
  return give_up_unseen(turn, event.name,
                        event.error.empty() ? "its manifest is another one" : event.error);
}

void look_for_manifests(Turn& turn) {
  settle_checkpoints(turn);
  for (auto& [name, written] : turn.state.written) {
    if (written.is_read || turn.now_ms - written.looked_ms < kLookAgainMs) continue;
    written.looked_ms = turn.now_ms;
    turn.actions.push_back(ReadManifest{name});
  }
}

}  // namespace lockstep::coordinator
