// Ends of runs, and the checkpoints from which they begin again.
#include <algorithm>

#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

using coordinator::GenerationEntry;
using coordinator::GenerationState;

WorldOptions four_workers() {
  WorldOptions options;
  options.checkpoint_every = 4;
  return options;
}

bool has_start(const Disk::Entries& entries, const std::function<bool(const wire::Start&)>& is_it) {
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    const auto* generation = std::get_if<GenerationEntry>(&entry);
    wire::Start start;
    return generation != nullptr && generation->state == GenerationState::kStarted &&
           start.ParseFromString(generation->start) && is_it(start);
  });
}

// The coordinator has verified the newest checkpoint, and it goes bad before the workers read it.
void rots_as_it_is_loaded(Script& s) {
  s.at(
      Moment::kApplied, [](const SimWorker& w) { return w.trainer()->state().step == 10; },
      [&s](const std::string&) {
        s.kill_all_workers();
        const auto is_done = std::make_shared<bool>(false);
        s.world().disk.kills_after = [&s, is_done](const Disk::Entries& entries) {
          const bool is_loaded = has_start(entries, [](const wire::Start& start) {
            return !start.source().checkpoint_path().empty();
          });
          if (is_loaded && !std::exchange(*is_done, true)) s.world().disk.rot(coordinator::kNoStep);
          return false;
        };
      });
}

std::string went_on(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.starts == 1 ? "" : "the run ended although an older checkpoint was there";
}

// The run is to stop. Before it can write anything, all its workers die.
void dies_as_it_stops(Script& s) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(1, 8)), [&s](const std::string&) {
    s.later(0, [&s] { s.cluster().coordinator()->request_stop(); });
    s.later(1, [&s] { s.kill_all_workers(); });
  });
}

std::string stopped(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.starts == 2 ? "" : "the run did not stop";  // a failure is one of the check "end"
}

void heal_after_the_end(Script& s, const std::string& agent, const std::string& coordinator) {
  if (!s.cluster().coordinator()->is_alive()) return s.world().network.heal(agent, coordinator);
  s.later(100, [&s, agent, coordinator] { heal_after_the_end(s, agent, coordinator); });
}

// A worker stands still for good, and its agent is cut off until the run is over: both miss the
// end.
void misses_the_end(Script& s) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 40)),
       [&s](const std::string& name) {
         s.later(0, [&s, name] {
           const std::string coordinator = s.cluster().coordinator()->name();
           for (SimAgent* agent : s.cluster().agents()) {
             if (agent->node() != name.substr(0, name.find('/'))) continue;
             s.world().network.partition(agent->name(), coordinator);
             heal_after_the_end(s, agent->name(), coordinator);
           }
           s.world().disturbed.insert(name);
           if (SimWorker* worker = s.worker(name)) worker->stop();
         });
       });
}

// A planned change leaves a worker out, and the coordinator dies with the commit of the switch.
void dies_with_the_switch(Script& s) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(4, 30)), [&s](const std::string&) {
    wire::Command command;
    command.set_scale_to(3);
    s.later(0, [&s, command] { s.cluster().command(command); });
  });
  s.world().disk.kills_after = [](const Disk::Entries& entries) {
    return has_start(entries, [](const wire::Start& start) { return start.members_size() == 3; });
  };
}

std::string next_took_over(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.terms < 2 ? "the coordinator did not die" : "";
}

// The coordinator stands still while a member dies in an evaluation. The answers of the others and
// their reports of that evaluation reach the coordinator in one turn.
void hears_all_at_once(Script& s) {
  s.at(Moment::kEvaluating, static_cast<uint64_t>(s.between(1, 12)),
       [&s](const std::string& name) { s.kill(name); });
  s.at(Moment::kClosing, 1, [&s](const std::string&) {
    s.later(0, [&s] { s.cluster().coordinator()->stop(); });
    s.later(500, [&s] { s.cluster().coordinator()->go_on(); });
  });
}

}  // namespace

std::vector<Scenario> scenarios_of_ends() {
  WorldOptions bare = four_workers();
  bare.checkpoint_every = 1'000;
  WorldOptions pair = four_workers();
  pair.nodes = 2;
  pair.workers_per_node = 1;
  WorldOptions evaluated = four_workers();
  evaluated.eval_every = 1;
  return {
      {"rots-as-it-is-loaded", four_workers(), rots_as_it_is_loaded, went_on},
      {"dies-as-it-stops", bare, dies_as_it_stops, stopped},
      {"misses-the-end", pair, misses_the_end,
       [](const Outcome& outcome) { return outcome.stuck; }},
      {"dies-with-the-switch", four_workers(), dies_with_the_switch, next_took_over},
      {"hears-all-at-once", evaluated, hears_all_at_once,
       [](const Outcome& outcome) { return outcome.stuck; }},
  };
}

}  // namespace lockstep::sim
