// Ends a run, in all ways.
#include <algorithm>

#include "comm/base/planted_bug.h"
#include "comm/base/text/shell_word.h"
#include "comm/run/checkpoint/store.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/corruption.h"
#include "coordinator/state/evaluations.h"

namespace lockstep::coordinator {
namespace {

void close_generations(Turn& turn) {
  for (KnownGeneration& known : turn.state.generations) {
    known.state = known.state == GenerationState::kStarted ? GenerationState::kClosed
                                                           : GenerationState::kAbandoned;
    turn.persist(GenerationEntry{known.generation, turn.state.term, known.state, {}, {}});
  }
  turn.state.generations.clear();
  turn.state.planned.reset();
}

bool is_last_state(const Turn& turn, const CheckpointEntry& c) {
  return !has_edge_after(c.step, c.step, turn.options) || is_after_edge(c.name);
}

bool has_final_checkpoint(const Turn& turn) {
  const Step last = turn.state.completed;
  return std::any_of(turn.state.checkpoints.begin(), turn.state.checkpoints.end(),
                     [&](const CheckpointEntry& c) {
                       return c.final && c.step == last && is_last_state(turn, c);
                     });
}

// After deaths of the coordinator, only a member that a planned change left out may have reports of
// the steps before, and it may not have sent them yet.
bool may_others_report(const State& state) {
  return std::any_of(state.members.begin(), state.members.end(), [&](const auto& entry) {
    const Member& member = entry.second;
    const bool has_trained = member.lived > 0 || !member.worked.empty();
    const bool is_unheard = member.connection == 0;
    return is_alive(member) && !contains(state.ranks, member.id) && (has_trained || is_unheard);
  });
}

Reason fail(Turn& turn, Reason reason, const std::string& message) {
  end_run(turn, 70, message + "; " + what_remains(turn));
  return reason;
}

}  // namespace

std::string how_it_ended(const Turn& turn, Step last) {
  const std::string unchecked =
      is_checking(turn.options)
          ? ""
          : "; the workers' weights were never compared (train.check_every is 0)";
  if (last == turn.options.total_steps)
    return "all " + std::to_string(last) + " steps are done" + unchecked;
  if (turn.state.script_end && last == turn.state.script_end->step)
    return "its script ended the run after step " + std::to_string(last) + " of " +
           std::to_string(turn.options.total_steps) + " (run.finish())" + unchecked;
  const EvalTrack track = track_until(last, turn.state.evals, turn.state.checkpoints, turn.options);
  return "ended after step " + std::to_string(last) + " of " +
         std::to_string(turn.options.total_steps) +
         " (train.patience): " + counted(track.since, "evaluation") + " in a row " +
         (track.since == 1 ? "was" : "were") + " no better than the one after step " +
         std::to_string(track.best.step) + unchecked;
}

bool has_checkpoint_of(const State& state, Step step) {
  return std::any_of(state.checkpoints.begin(), state.checkpoints.end(),
                     [step](const CheckpointEntry& c) { return c.step == step; });
}

bool has_last_checkpoint(const Turn& turn, Step step) {
  return std::any_of(
      turn.state.checkpoints.begin(), turn.state.checkpoints.end(),
      [&](const CheckpointEntry& c) { return c.step == step && is_last_state(turn, c); });
}

std::string what_is_lost(const Turn& turn) {
  return turn.state.checkpoints.empty() ? "all steps are lost"
                                        : "the steps since the last checkpoint are lost";
}

std::string what_remains(const Turn& turn) {
  const std::string& dir = turn.options.run_dir;
  const std::string command = "lockstep run " + shell_word(dir + "/job.yaml") + " --run-dir " +
                              shell_word(dir) + " --resume";
  if (turn.state.checkpoints.empty()) {
    return "no checkpoint had been written yet; to begin again: " + command;
  }
  const CheckpointEntry& newest = turn.state.checkpoints.back();
  return "checkpoint " + newest.name + " (" + std::to_string(newest.step) +
         " steps) remains; to go on from it: " + command;
}

void end_run(Turn& turn, int code, const std::string& message) {
  State& state = turn.state;
  close_generations(turn);
  state.run = RunState::kEnded;
  state.exit_code = code;
  state.message = message;
  turn.persist(EventEntry{state.generation, "run_ended",
                          "exit code " + std::to_string(code) + ": " + message});
  if (!LOCKSTEP_BUG(kEndForgotten))
    turn.persist(SettingEntry{"end", std::to_string(code) + " " + message});
  for (const auto& [connection, member] : state.by_connection) {
    say_goodbye(turn, connection, code, message);
  }
  for (const auto& [connection, agent] : state.agents) {
    say_goodbye(turn, connection, code, message);
  }
  turn.actions.push_back(EndRun{code, message});
}

void say_goodbye(Turn& turn, ConnectionId to, int code, const std::string& message) {
  wire::Envelope goodbye;
  goodbye.mutable_goodbye()->set_exit_code(static_cast<uint32_t>(code));
  goodbye.mutable_goodbye()->set_message(message);
  turn.send(to, std::move(goodbye));
}

Reason end_term(Turn& turn, const std::string& message, LogLine::Level level) {
  State& state = turn.state;
  if (state.stop_ms && !state.is_shrinking) {
    // Without a checkpoint, too: the user who asked for the stop may begin the run again.
    end_run(turn, 75,
            message + ", but the run was to stop (" + state.stop_reason +
                "): " + what_is_lost(turn) + "; " + what_remains(turn));
    return Reason::kEndedStopped;
  }
  if (const auto over = judge_fruitless(turn, message)) return *over;
  close_generations(turn);
  state.run = RunState::kTermEnded;
  state.message = message;
  turn.note(level, "term_ended", message);
  turn.actions.push_back(EndTerm{message});
  return Reason::kEndedTerm;
}

Reason corrupt(Turn& turn, const std::string& what) {
  turn.note(LogLine::Level::kInfo, "corruption", what);
  end_run(turn, 70, what + "; " + what_remains(turn));
  return Reason::kEndedCorruption;
}

void end_by_script(Turn& turn, Step step) {
  State& state = turn.state;
  const ScriptEnd end{step, turn.options.total_steps};
  if (step >= last_step(state, turn.options)) return;  // known, or the plan's
  state.script_end = end;
  if (!LOCKSTEP_BUG(kScriptEndNotKept)) turn.persist(SettingEntry{kEndSetting, text_of(end)});
  turn.note(LogLine::Level::kInfo, "script_end",
            "the script ended the run after step " + std::to_string(step) + " of " +
                std::to_string(end.planned));
}

void forget_script_end(Turn& turn, const std::string& why) {
  if (!turn.state.script_end) return;
  turn.note(LogLine::Level::kInfo, "script_end",
            "that the script ended the run after step " +
                std::to_string(turn.state.script_end->step) + " counts no more: " + why);
  turn.state.script_end.reset();
  turn.persist(SettingEntry{kEndSetting, ""});
}

Reason on_end(Turn& turn, const Member& member, Generation generation,
              const wire::EndReport& message) {
  const State& state = turn.state;
  // Members of a newer generation went on without the report of an older one.
  if (!is_open(state.run) || generation != state.source_generation || !is_source(state, member)) {
    push_present(turn, member);
    return Reason::kRefusedStaleGeneration;
  }
  if (!can_end_at(turn, message.step())) return Reason::kRefusedMalformed;
  const bool is_news = message.step() < last_step(state, turn.options);
  end_by_script(turn, message.step());
  return is_news ? Reason::kScriptEnded : Reason::kAlreadyCounted;
}

bool can_end_at(const Turn& turn, Step step) {
  const State& state = turn.state;
  const bool is_whole = first_turn(turn.options.shape, step) == step;
  return step > 0 && is_whole && step >= state.completed && step >= state.resume.step &&
         step <= last_step(state, turn.options);
}

bool is_done(const Turn& turn) {
  return turn.state.completed == end_step(turn.state, turn.options) && has_final_checkpoint(turn);
}

bool lacks_last_evaluation(const Turn& turn) {
  const Step last = turn.state.completed;
  return has_final_checkpoint(turn) &&
         is_evaluated_after(last, turn.options, turn.state.script_end) &&
         !turn.state.evals.contains(last);
}

Reason finish_if_all_left(Turn& turn, Reason otherwise) {
  State& state = turn.state;
  if (state.ranks.empty() || !is_open(state.run)) return otherwise;
  const auto has_left = [&](MemberId id) {
    return state.members.at(id).state == MemberState::kLeft;
  };
  if (!std::all_of(state.ranks.begin(), state.ranks.end(), has_left)) return otherwise;
  bool is_stopped = false;
  const Step last = state.members.at(state.ranks.front()).leave->applied().step();
  for (MemberId id : state.ranks) {
    const wire::Leave& leave = *state.members.at(id).leave;
    if (leave.applied().step() != last) {
      return fail(turn, Reason::kEndedCorruption,
                  "the workers left at different steps, " + std::to_string(last) + " and " +
                      std::to_string(leave.applied().step()));
    }
    is_stopped |= leave.reason() == wire::Leave::STOPPED;
  }
  if (state.completed < last && may_others_report(state)) return otherwise;
  if (const std::string what = unprovable_step(turn, last); !what.empty())
    return end_term(turn, what + "; the run goes on from the newest checkpoint");
  if (state.completed != last) {
    return fail(turn, Reason::kEndedCorruption,
                "the workers left after step " + std::to_string(last) + " but reported only " +
                    std::to_string(state.completed));
  }
  const Step end = end_step(state, turn.options);
  if (!is_stopped && last != end) {
    return fail(
        turn, Reason::kEndedWorkerFailed,
        "the workers finished at step " + std::to_string(last) + " of " + std::to_string(end));
  }
  if (last > 0 &&
      !(is_stopped ? has_checkpoint_of(state, last) : has_last_checkpoint(turn, last))) {
    return fail(turn, Reason::kEndedNoCheckpoint,
                "all workers left without a checkpoint of the last step, " + std::to_string(last));
  }
  LedgerRow& row = state.lineage.at(state.source_generation).row;
  row.last = ResumePoint{last, is_stopped ? Phase::kTrain : Phase::kEnd};
  turn.persist(LedgerEntry{row});
  if (is_stopped && state.is_shrinking) {
    return end_term(turn, state.stop_reason +
                              "; the checkpoint is written, and the run waits for more workers");
  }
  if (is_stopped) {
    end_run(turn, 75,
            "stopped after step " + std::to_string(last) +
                (state.stop_reason.empty() ? "" : " (" + state.stop_reason + ")") + "; " +
                what_remains(turn));
    return Reason::kEndedStopped;
  }
  end_run(turn, 0, how_it_ended(turn, last));
  return Reason::kEndedFinished;
}

}  // namespace lockstep::coordinator
