// Runs of scripts: only the workers know what they train, and the first term asks them.
#include <algorithm>

#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

WorldOptions script() {
  WorldOptions options;
  options.checkpoint_every = 4;
  options.is_script = true;
  return options;
}

bool has_identity(const Disk::Entries& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return std::holds_alternative<coordinator::IdentityEntry>(entry);
  });
}

// One term asks, the next term trains. A coordinator that died had terms of its own.
std::string asked_once(const Outcome& outcome, uint32_t least_terms) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.starts != 1 || outcome.seen.rollbacks != 0) return "the run began again";
  if (outcome.seen.terms < least_terms) return "nobody was asked, or the coordinator did not die";
  return outcome.seen.generations == 1 ? "" : "the generation had to be changed";
}

std::string asked(const Outcome& outcome) {
  return asked_once(outcome, 2);
}

std::string asked_by_two(const Outcome& outcome) {
  return asked_once(outcome, 3);
}

std::string ended_well(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.terms >= 2 ? "" : "nobody was asked";
}

std::string ended_with(const Outcome& outcome, const std::string& code) {
  return outcome.stuck == "the run ended with " + code ? ""
                                                       : "it was not refused: " + outcome.stuck;
}

// Kills while workers register, one after the other, in the first 250 ms.
void kill_while_open(Script& s) {
  s.later(s.between(20, 300), [&s] {
    const auto workers = s.cluster().workers();
    if (workers.empty()) return;
    s.kill(workers[static_cast<size_t>(s.between(0, static_cast<int64_t>(workers.size()) - 1))]
               ->name());
  });
}

void change_the_lr(World& world) {
  world.script[kLearningRate] = "0.2";
}

std::string some_place(Script& s) {
  return "n" + std::to_string(s.between(0, 1)) + "/w" + std::to_string(s.between(0, 1));
}

}  // namespace

std::vector<Scenario> scenarios_of_scripts() {
  return {
      {"a-script-is-asked-first", script(), [](Script&) {}, asked},
      {"dies-before-the-facts", script(),
       [](Script& s) { s.world().disk.kills_before = has_identity; }, asked_by_two},
      {"dies-with-the-facts", script(),
       [](Script& s) { s.world().disk.kills_after = has_identity; }, asked},
      {"coordinator-dies-while-it-asks", script(),
       [](Script& s) { s.later(s.between(60, 300), [&s] { s.cluster().coordinator()->kill(); }); },
       ended_well},
      {"a-worker-dies-while-it-is-asked", script(), kill_while_open, ended_well},
      {"all-die-while-they-are-asked", script(),
       [](Script& s) { s.later(s.between(60, 400), [&s] { s.cluster().lose_everything(); }); },
       ended_well},
      {"a-worker-dies-behind-the-facts", script(),
       [](Script& s) {
         s.world().disk.kills_after = has_identity;
         s.later(s.between(200, 600), [&s] { kill_while_open(s); });
       },
       ended_well},
      {"one-reads-other-data-than-the-first", script(),
       [](Script& s) { s.world().misread[some_place(s)] = s.world().facts.train_samples() + 1; },
       [](const Outcome& outcome) { return ended_with(outcome, "65"); }},
      {"one-has-another-lr-than-the-first", script(),
       [](Script& s) { s.world().mistold[some_place(s)] = "0.3"; },
       [](const Outcome& outcome) { return ended_with(outcome, "64"); }},
      {"resumed-with-another-lr", script(),
       [](Script& s) {
         s.at(
             Moment::kApplied, [](const SimWorker& w) { return w.trainer()->state().step == 11; },
             [&s](const std::string&) {
               s.later(0, [&s] {
                 s.cluster().lose_everything();
                 change_the_lr(s.world());
               });
             });
       },
       [](const Outcome& outcome) { return ended_with(outcome, "64"); }},
      {"comes-back-with-another-lr", script(),
       [](Script& s) {
         s.at(Moment::kApplied, static_cast<uint64_t>(s.between(8, 30)),
              [&s](const std::string& name) {
                s.world().mistold[s.worker(name)->place()] = "0.3";
                s.kill(name);
              });
       },
       [](const Outcome& outcome) { return outcome.stuck; }},
  };
}

}  // namespace lockstep::sim
