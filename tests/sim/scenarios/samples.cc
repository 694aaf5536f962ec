// Samples that do harm: they kill whoever reads them, or make the loss no number.
#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

WorldOptions four(bool skips) {
  WorldOptions options;
  options.checkpoint_every = 4;
  options.skips_bad_samples = skips;
  return options;
}

BadSlot some(Script& s) {
  return {static_cast<Step>(s.between(0, 23)), static_cast<uint32_t>(s.between(0, 3))};
}

void deadly(Script& s) {
  s.world().deadly = some(s);
}

void absurd(Script& s) {
  s.world().absurd = some(s);
}

std::string stopped(const Outcome& outcome) {
  return outcome.stuck == "the run ended with 65" ? "" : "it was not stopped: " + outcome.stuck;
}

std::string skipped(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.starts != 1) return "the run had to be started again";
  return outcome.seen.skips == 1 ? "" : std::to_string(outcome.seen.skips) + " runs are skipped";
}

// What a slot has done is undone by a rollback, what it would do by none.
std::string skipped_in_place(const Outcome& outcome) {
  return outcome.seen.rollbacks == 0 ? skipped(outcome) : "the run was rolled back";
}

}  // namespace

std::vector<Scenario> scenarios_of_samples() {
  return {
      {"deadly-sample-stops", four(false), deadly, stopped},
      {"deadly-sample-is-skipped", four(true), deadly, skipped_in_place},
      {"absurd-loss-stops", four(false), absurd, stopped},
      {"absurd-loss-is-skipped", four(true), absurd, skipped},
  };
}

}  // namespace lockstep::sim
