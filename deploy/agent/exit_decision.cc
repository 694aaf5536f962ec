#include "deploy/agent/exit_decision.h"

namespace lockstep {
namespace {

// Codes with which another attempt would end the same way: usage, data, configuration.
bool is_hopeless(int exit_code) {
  return exit_code >= 64 && exit_code <= 66;
}

}  // namespace

ExitDecision decide_after_exit(const ExitFacts& facts) {
  constexpr int kCheckpointedExit = 75;
  constexpr int kConfigExit = 78;
  if (facts.end.is_success()) return {ExitAction::kExpected, "finished"};
  if (facts.run_is_over) return {ExitAction::kExpected, "the run is over"};
  if (facts.end.exit_code == kCheckpointedExit) return {ExitAction::kExpected, "checkpointed"};
  if (facts.stop_requested) return {ExitAction::kReport, "died while stopping"};
  if (is_hopeless(facts.end.exit_code) || facts.end.exit_code == kConfigExit)
    return {ExitAction::kReport, "would fail again"};
  if (facts.restarts_left == 0) return {ExitAction::kReport, "no restarts left"};
  return {ExitAction::kRestart, "restarts left"};
}

}  // namespace lockstep
