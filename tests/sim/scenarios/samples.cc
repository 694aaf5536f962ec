// Harmful samples: they kill the worker that reads them, or make the loss NaN or infinite.
#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

WorldOptions four(bool skips) {
  WorldOptions options;
  options.checkpoint_every = 4;
  options.skips_bad_samples = skips;
  return options;
}

WorldOptions some_workers(uint32_t workers, bool skips) {
  WorldOptions options = four(skips);
  options.nodes = 1;
  options.workers_per_node = workers;
  options.read_ahead = 2;
  return options;
}

// A loop with phases makes several steps on each batch.
WorldOptions in_turns(bool skips) {
  WorldOptions options = four(skips);
  options.turns = 3;
  options.eval_every = 4;
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

// The script raises at every slot.
void raises(Script& s) {
  s.world().raises = static_cast<Step>(s.between(0, 23));
}

// Steps so fast that workers write all checkpoints before the first records leave.
WorldOptions quick() {
  WorldOptions options = four(true);
  options.compute_ms = 2;
  options.checkpoint_every = 2;
  options.has_eval = false;
  return options;
}

// The members switch before any process knows the loss of the last step before the switch.
void absurd_while_one_joins(Script& s) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(5, 30)),
       [&s](const std::string& process) { s.kill(process); });
  s.at(
      Moment::kPlanned, [](const SimWorker& w) { return w.trainer()->generation() != 0; },
      [&s](const std::string& process) {
        const Step step = s.worker(process)->trainer()->state().step;
        s.world().absurd = BadSlot{step + static_cast<Step>(s.between(0, 1)), 0};
      });
}

std::string stopped(const Outcome& outcome) {
  return outcome.stuck == "the run ended with 65" ? "" : "it was not stopped: " + outcome.stuck;
}

std::string skipped(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.starts != 1) return "the run had to be started again";
  return outcome.seen.skips == 1 ? "" : std::to_string(outcome.seen.skips) + " runs are skipped";
}

// At most one slot is left out before it is clear that the script is at fault. The slot comes back.
std::string script_at_fault(const Outcome& outcome) {
  if (outcome.stuck != "the run ended with 64") return "it was not ended: " + outcome.stuck;
  return outcome.seen.skips <= 1 ? "" : std::to_string(outcome.seen.skips) + " slots are skipped";
}

// Expects an entry for each of the batch's steps, from the first one without the samples on.
std::string skipped_in_batch(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.starts != 1) return "the run had to be started again";
  const bool is_right = outcome.seen.skips >= 1 && outcome.seen.skips <= 3;
  return is_right ? "" : std::to_string(outcome.seen.skips) + " runs are skipped";
}

// The run rolls back what a slot has done. For what a slot would do, it rolls nothing back.
std::string skipped_in_place(const Outcome& outcome) {
  return outcome.seen.rollbacks == 0 ? skipped(outcome) : "the run was rolled back";
}

}  // namespace

std::vector<Scenario> scenarios_of_samples() {
  return {
      {"deadly-sample-stops", four(false), deadly, stopped},
      {"deadly-sample-is-skipped", four(true), deadly, skipped_in_place},
      {"deadly-sample-stops-two", some_workers(2, false), deadly, stopped},
      {"deadly-sample-of-two-is-skipped", some_workers(2, true), deadly, skipped},
      {"deadly-sample-stops-one", some_workers(1, false), deadly, stopped},
      {"deadly-sample-of-one-is-skipped", some_workers(1, true), deadly, skipped},
      {"script-raises-at-all-slots", four(true), raises, script_at_fault},
      {"script-raises-at-all-slots-of-two", some_workers(2, true), raises, script_at_fault},
      {"script-raises-at-all-slots-of-one", some_workers(1, true), raises, script_at_fault},
      {"absurd-loss-stops", four(false), absurd, stopped},
      {"absurd-loss-is-skipped", four(true), absurd, skipped},
      {"checkpoints-overtake-an-absurd-loss", quick(), absurd, skipped},
      {"deadly-sample-of-a-batch-in-turns", in_turns(true), deadly, skipped_in_batch},
      {"absurd-loss-of-a-batch-in-turns", in_turns(true), absurd, skipped_in_batch},
      {"absurd-loss-of-a-turn-stops", in_turns(false), absurd, stopped},
      {"absurd-loss-while-one-joins", four(true), absurd_while_one_joins, skipped},
  };
}

}  // namespace lockstep::sim
