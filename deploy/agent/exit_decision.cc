#include "deploy/agent/exit_decision.h"

#include <signal.h>

#include <algorithm>

#include "comm/base/limits.h"

namespace lockstep {
namespace {

constexpr int kInternalExit = 70;
constexpr int kConfigExit = 78;

// Another attempt would end the same way: usage, data, configuration, a missing library.
bool is_hopeless(const ProcessEnd& end) {
  const int exit_code = end.exit_code;
  return (exit_code >= 64 && exit_code <= 66) || exit_code == kConfigExit || end.cannot_run();
}

bool is_preemption(const ProcessEnd& end) {
  return end.exit_code == kCheckpointedExit || end.signal == SIGTERM;
}

// A worker that chose to end may have heard of the end of the run before this agent has. The pause
// lets the coordinator's word, which is under way then, come first.
int64_t pause_after(const ExitFacts& facts) {
  const bool chose_to_end =
      facts.end.exit_code == kInternalExit || facts.end.exit_code == kCheckpointedExit;
  return std::max<int64_t>(chose_to_end ? limits::kRestartAfterExitMs : 0,
                           restart_pause_ms(facts.quick_deaths));
}

}  // namespace

int64_t restart_pause_ms(uint32_t quick_deaths) {
  if (quick_deaths < 2) return 0;
  const uint32_t doublings = std::min(quick_deaths - 2, 20U);
  return std::min<int64_t>(int64_t{limits::kRestartPauseFirstMs} << doublings,
                           limits::kRestartPauseMaxMs);
}

ExitDecision decide_after_exit(const ExitFacts& facts) {
  if (facts.end.is_success()) {
    const bool is_over = facts.run_is_over || facts.stop_requested;
    if (is_over || !facts.is_wanted || !facts.has_lost_other)
      return {ExitAction::kExpected, ExitCause::kNone, 0, "finished, or left out"};
    return {ExitAction::kRestart, ExitCause::kCrash, limits::kRestartAfterExitMs,
            "left out, and the one that was to stay has died"};
  }
  if (facts.run_is_over) return {ExitAction::kExpected, ExitCause::kNone, 0, "the run is over"};
  const bool preempted = is_preemption(facts.end);
  if (facts.stop_requested) {
    if (preempted) return {ExitAction::kExpected, ExitCause::kNone, 0, "stopped as asked"};
    return {ExitAction::kReport, ExitCause::kNone, 0, "died while stopping"};
  }
  if (is_hopeless(facts.end)) return {ExitAction::kReport, ExitCause::kNone, 0, "would fail again"};
  if (!facts.is_wanted)
    return {ExitAction::kReport, ExitCause::kNone, 0, "fewer workers are wanted"};
  const uint32_t left = preempted ? facts.preemptions_left : facts.crashes_left;
  const ExitCause cause = preempted ? ExitCause::kPreemption : ExitCause::kCrash;
  if (left == 0) return {ExitAction::kReport, cause, 0, "no restarts left"};
  return {ExitAction::kRestart, cause, pause_after(facts), preempted ? "preempted" : "crashed"};
}

}  // namespace lockstep
