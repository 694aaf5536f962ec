// Deaths of the coordinator at the moments that matter, and what it refuses when it begins again.
#include <algorithm>

#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

using coordinator::EventEntry;
using coordinator::GenerationEntry;
using coordinator::GenerationState;

WorldOptions four() {
  WorldOptions options;
  options.checkpoint_every = 4;
  return options;
}

// A take-over begins a term of its own, but rolls nothing back.
std::string taken_over(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.starts != 1 || outcome.seen.rollbacks != 0) return "the run did not go on in place";
  return outcome.seen.terms < 2 ? "the coordinator did not die" : "";
}

// A worker dies, and the coordinator dies with the commit that answers the death. It pushes nothing
// of the commit.
void dies_after(Script& s, GenerationState state) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 60)),
       [&s, state](const std::string& name) {
         s.world().disk.kills_after = [state](const Disk::Entries& entries) {
           return std::any_of(entries.begin(), entries.end(), [state](const auto& entry) {
             const auto* generation = std::get_if<GenerationEntry>(&entry);
             return generation != nullptr && generation->state == state;
           });
         };
         s.kill(name);
       });
}

// A loss that is no number ends the run, and the coordinator dies with the commit that says so.
void dies_with_the_end(Script& s) {
  s.world().absurd = {static_cast<Step>(s.between(0, 23)), static_cast<uint32_t>(s.between(0, 3))};
  s.world().disk.kills_after = [](const Disk::Entries& entries) {
    return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
      const auto* event = std::get_if<EventEntry>(&entry);
      return event != nullptr && event->kind == "run_ended";
    });
  };
}

std::string ended_all_the_same(const Outcome& outcome) {
  if (outcome.stuck != "the run ended with 65") return "it was not stopped: " + outcome.stuck;
  if (outcome.starts != 1 || outcome.seen.generations != 1) return "it trained on after its end";
  return outcome.seen.terms < 2 ? "the coordinator did not die" : "";
}

std::string stopped_by_order(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.seen.terms < 2) return "the coordinator did not die";
  return outcome.starts == 2 ? "" : "the run did not stop";
}

// One member cannot hear of a change. Then the coordinator dies, and the others switch or do not.
void one_misses_change(Script& s) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(8, 30)), [&s](const std::string& name) {
    s.world().disturbed.insert(name);
    s.world().network.partition(name, s.cluster().coordinator()->name());
    wire::Command command;
    command.set_scale_to(static_cast<uint32_t>(s.between(2, 3)));
    s.later(0, [&s, command] { s.cluster().command(command); });
  });
  s.at(Moment::kPlanned, 1, [&s](const std::string&) {
    s.later(s.between(0, 20), [&s] { s.cluster().coordinator()->kill(); });
  });
}

wire::Command drain_of(const SimWorker& worker) {
  wire::Command command;
  command.set_drain_member(worker.member());
  return command;
}

// The coordinator dies as soon as it has said yes.
void order_and_kill(Script& s, const wire::Command& command) {
  s.cluster().command(command, [&s] { s.later(0, [&s] { s.cluster().coordinator()->kill(); }); });
}

// A worker is on its way out, so the coordinator cannot plan the change for the next order yet.
void dies_after_an_order(Script& s, const std::function<wire::Command(Script&)>& order) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(8, 30)), [&s, order](const std::string&) {
    s.later(0, [&s, order] {
      s.cluster().command(drain_of(*s.cluster().workers().front()), [&s, order] {
        s.later(0, [&s, order] { order_and_kill(s, order(s)); });
      });
    });
  });
}

// A worker dies, and the others hear of the stop only with their next start.
void dies_after_a_stop(Script& s) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(8, 40)),
       [&s](const std::string& name) { s.kill(name); });
  s.at(Moment::kClosing, 1, [&s](const std::string& name) {
    if (SimWorker* worker = s.worker(name)) worker->stall(500);
    wire::Command command;
    command.set_stop(true);
    s.later(0, [&s, command] { order_and_kill(s, command); });
  });
}

void restarted_twice_in_transfer(Script& s) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 40)),
       [&s](const std::string& name) { s.kill(name); });
  s.at(Moment::kTransfer, 1, [&s](const std::string&) {
    for (SimWorker* worker : s.cluster().workers()) worker->stall(2'000);
    s.later(0, [&s] { s.cluster().coordinator()->kill(); });
    s.later(1'000, [&s] { s.cluster().coordinator()->kill(); });
  });
}

// Reports of checkpoints overtake reports of evaluations, because only so many batches of records
// may be on their way.
void stands_still_among_evaluations(Script& s) {
  s.at(Moment::kEvaluated, static_cast<uint64_t>(s.between(1, 40)), [&s](const std::string&) {
    s.later(0, [&s] { s.cluster().coordinator()->stop(); });
    s.later(s.between(500, 4'000), [&s] { s.cluster().coordinator()->go_on(); });
  });
}

// In the middle of an epoch everything is lost, and the user changes the job.
void resumed_with(Script& s, const std::function<void(wire::JobSpec&, wire::DataFacts&)>& change) {
  s.at(
      Moment::kApplied, [](const SimWorker& w) { return w.trainer()->state().step == 11; },
      [&s, change](const std::string&) {
        s.later(0, [&s, change] {
          s.cluster().lose_everything();
          change(s.world().job, s.world().facts);
          s.world().facts_file = s.world().facts;
        });
      });
}

std::string refused(const Outcome& outcome) {
  return outcome.stuck == "the run ended with 64" ? "" : "it was not refused: " + outcome.stuck;
}

}  // namespace

std::vector<Scenario> scenarios_of_coordinators() {
  WorldOptions long_one = four();
  long_one.steps = 80;
  WorldOptions evaluated = four();
  evaluated.steps = 60;
  evaluated.eval_every = 1;
  evaluated.checkpoint_every = 1;
  evaluated.best = "loss";
  return {
      {"dies-between-prepare-and-push", four(),
       [](Script& s) { dies_after(s, GenerationState::kPrepared); }, taken_over},
      {"dies-between-start-and-push", four(),
       [](Script& s) { dies_after(s, GenerationState::kStarted); }, taken_over},
      {"dies-with-the-end", four(), dies_with_the_end, ended_all_the_same},
      {"one-misses-a-change", four(), one_misses_change, taken_over},
      {"dies-after-a-drain", long_one,
       [](Script& s) {
         dies_after_an_order(
             s, [](Script& script) { return drain_of(*script.cluster().workers().back()); });
       },
       taken_over},
      {"dies-after-a-drain-of-a-node", long_one,
       [](Script& s) {
         dies_after_an_order(s, [](Script&) {
           wire::Command command;
           command.set_drain_node("n1");
           return command;
         });
       },
       taken_over},
      {"dies-after-a-stop", long_one, dies_after_a_stop, stopped_by_order},
      {"restarted-twice-in-a-transfer", four(), restarted_twice_in_transfer, taken_over},
      {"stands-still-among-evaluations", evaluated, stands_still_among_evaluations,
       [](const Outcome& outcome) { return outcome.stuck; }},
      {"resumed-with-another-batch", four(),
       [](Script& s) {
         resumed_with(s, [](auto& job, auto&) { job.mutable_train()->set_global_batch(16); });
       },
       refused},
      {"resumed-with-other-slots", four(),
       [](Script& s) {
         resumed_with(s, [](auto& job, auto&) { job.mutable_train()->set_slots(8); });
       },
       refused},
      {"resumed-with-another-seed", four(),
       [](Script& s) { resumed_with(s, [](auto& job, auto&) { job.set_seed(job.seed() + 1); }); },
       refused},
      {"resumed-with-other-data", four(),
       [](Script& s) {
         resumed_with(s, [](auto&, auto& facts) { facts.set_train_fingerprint("0000"); });
       },
       refused},
  };
}

}  // namespace lockstep::sim
