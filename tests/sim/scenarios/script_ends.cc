// Ends of runs by their scripts, and what may die meanwhile.
#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

constexpr Step kEnd = 10;

WorldOptions ends(ScriptEnds how) {
  WorldOptions options;
  options.checkpoint_every = 4;
  options.script_ends = how;
  options.script_steps = kEnd;
  options.script_ends_ms = 500;
  return options;
}

WorldOptions ends_in_body() {
  return ends(ScriptEnds::kInBody);
}

bool is_at_end(const SimWorker& worker) {
  return worker.trainer()->state().step == kEnd;
}

std::string came_to_its_end(const Outcome& outcome) {
  return outcome.stuck;
}

std::string ended_in_one_generation(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.generations == 1 ? "" : "an end by the script broke a generation";
}

std::string ended_by_two_coordinators(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.terms > 1 ? "" : "the coordinator did not die";
}

// The first member that knows of the end is about to say so. The next coordinator hears of it when
// the members register.
void coordinator_dies_as_the_script_ends(Script& s) {
  s.at(Moment::kApplied, is_at_end,
       [&s](const std::string&) { s.later(0, [&s] { s.cluster().coordinator()->kill(); }); });
}

void writer_dies_where_the_script_ends(Script& s) {
  s.at(
      Moment::kApplied, [](const SimWorker& w) { return is_at_end(w) && w.trainer()->is_writer(); },
      [&s](const std::string& name) { s.kill(name); });
}

void only_one_knows_of_the_end(Script& s) {
  s.at(Moment::kApplied, is_at_end, [&s](const std::string& name) { s.kill(name); });
}

void all_die_as_the_script_ends(Script& s) {
  s.at(Moment::kApplied, is_at_end, [&s](const std::string&) { s.kill_all_workers(); });
}

void all_die_after_the_script_ends(Script& s) {
  s.at(Moment::kFinalWritten, 1, [&s](const std::string&) { s.kill_all_workers(); });
}

// No coordinator hears of the end. The final checkpoint tells the next one.
void only_the_checkpoint_knows_of_the_end(Script& s) {
  s.at(
      Moment::kBeforeApply,
      [](const SimWorker& w) { return w.trainer()->state().step + 1 == kEnd; },
      [&s](const std::string&) { s.later(0, [&s] { s.cluster().coordinator()->stop(); }); });
  s.at(Moment::kFinalWritten, 1, [&s](const std::string&) {
    s.kill_all_workers();
    s.later(1, [&s] { s.cluster().coordinator()->kill(); });
  });
}

// A change is planned just before the end, and takes effect before it or never.
void scaled_as_the_script_ends(Script& s) {
  const Step when = kEnd - 1 - static_cast<Step>(s.between(0, 1));
  s.at(
      Moment::kApplied, [when](const SimWorker& w) { return w.trainer()->state().step == when; },
      [&s](const std::string&) {
        wire::Command command;
        command.set_scale_to(3);
        s.later(s.between(0, 20), [&s, command] { s.cluster().command(command); });
      });
}

void other_weights_where_the_script_ends(Script& s) {
  s.damage_at(kEnd - 1, Damage::kWeights);
}

void order(Script& s, int64_t after_ms, const std::function<void(wire::Command&)>& fill) {
  wire::Command command;
  fill(command);
  s.later(after_ms, [&s, command] { s.cluster().command(command); });
}

// The only member loses the coordinator, and trains on in its generation. A worker that waited for
// a place begins again without that member, and comes to the end earlier. The last order makes the
// new term not wait for the lost member.
void one_trains_beyond_the_end(Script& s) {
  s.at(Moment::kApplied, 1, [&s](const std::string&) {
    order(s, 0, [](wire::Command& command) { command.set_scale_to(1); });
  });
  s.at(
      Moment::kApplied, [](const SimWorker& w) { return w.trainer()->generation() == 2; },
      [&s](const std::string& name) {
        s.world().disturbed.insert(name);
        s.world().network.partition(name, s.cluster().coordinator()->name());
        order(s, 0, [](wire::Command& command) { command.set_scale_to(2); });
        order(s, 1'200, [](wire::Command& command) { command.set_scale_to(1); });
      });
}

std::string ended_by_another(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.terms == 2 && outcome.starts == 1 ? "" : "nobody took its place";
}

std::string one_is_named_at_the_end(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.named.size() == 1 ? "" : "the wrong weights were not found";
}

}  // namespace

std::vector<Scenario> scenarios_of_script_ends() {
  WorldOptions evaluated = ends_in_body();
  evaluated.eval_every = 3;
  evaluated.patience = 4;
  evaluated.best = "loss";
  WorldOptions checked = ends_in_body();
  checked.nodes = 3;
  checked.workers_per_node = 1;
  checked.check_every = 7;
  WorldOptions of_two = ends(ScriptEnds::kByClock);
  of_two.workers_per_node = 1;
  of_two.steps = 400;
  of_two.checkpoint_every = 0;
  of_two.script_ends_ms = 1'900;  // before an agent kills a worker that is silent for two leases
  return {
      {"ends-in-its-body", ends_in_body(), [](Script&) {}, ended_in_one_generation},
      {"ends-as-a-step-is-applied", ends(ScriptEnds::kInApply), [](Script&) {},
       ended_in_one_generation},
      {"ends-by-the-clock", ends(ScriptEnds::kByClock), [](Script&) {}, ended_in_one_generation},
      {"ends-among-evaluations", evaluated, [](Script&) {}, ended_in_one_generation},
      {"coordinator-dies-as-the-script-ends", ends_in_body(), coordinator_dies_as_the_script_ends,
       ended_by_two_coordinators},
      {"writer-dies-where-the-script-ends", evaluated, writer_dies_where_the_script_ends,
       came_to_its_end},
      {"only-one-knows-of-the-end", ends(ScriptEnds::kInApply), only_one_knows_of_the_end,
       came_to_its_end},
      {"all-die-as-the-script-ends", ends_in_body(), all_die_as_the_script_ends, came_to_its_end},
      {"all-die-after-the-script-ends", ends_in_body(), all_die_after_the_script_ends,
       came_to_its_end},
      {"only-the-checkpoint-knows-of-the-end", ends_in_body(), only_the_checkpoint_knows_of_the_end,
       ended_by_two_coordinators},
      {"scaled-as-the-script-ends", ends_in_body(), scaled_as_the_script_ends, came_to_its_end},
      {"one-trains-beyond-the-end", of_two, one_trains_beyond_the_end, ended_by_another},
      {"other-weights-where-the-script-ends", checked, other_weights_where_the_script_ends,
       one_is_named_at_the_end},
  };
}

}  // namespace lockstep::sim
