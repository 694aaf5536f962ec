// Deaths of workers at the moments that matter.
#include <memory>

#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

WorldOptions workers(uint32_t nodes, uint32_t each) {
  WorldOptions options;
  options.nodes = nodes;
  options.workers_per_node = each;
  options.checkpoint_every = 4;
  return options;
}

// The run went on in place: no new term, no rollback.
std::string in_place(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.seen.terms != 1 || outcome.seen.rollbacks != 0)
    return "the run did not go on in place: " + std::to_string(outcome.seen.terms) + " terms";
  return outcome.seen.generations < 2 ? "nobody died" : "";
}

std::string finished(const Outcome& outcome) {
  return outcome.stuck;
}

// Two owners of one slot died in one step. The run may take that for a sample that kills.
std::string finished_or_suspected(const Outcome& outcome) {
  return outcome.was_stopped_by_samples ? "" : outcome.stuck;
}

bool has_rolled_back(const World& world) {
  for (const Disk::Entries& commit : world.disk.commits())
    for (const coordinator::JournalEntry& entry : commit)
      if (std::holds_alternative<coordinator::RollbackEntry>(entry)) return true;
  return false;
}

void dies_half_read(Script& s) {
  s.at(Moment::kReading, static_cast<uint64_t>(s.between(1, 40)), [&s](const std::string& reader) {
    const auto others = s.others(reader);
    if (others.size() < 2) return;
    others[0]->stall(60);
    s.later(s.between(2, 10), [&s, victim = others[1]->name()] { s.kill(victim); });
  });
}

void dies_while_applying(Script& s) {
  s.at(Moment::kApplying, static_cast<uint64_t>(s.between(1, 40)), [&s](const std::string& name) {
    s.worker(name)->stall(s.between(10, 60));
    s.kill(s.others(name).front()->name());
  });
}

void dies_during_answers(Script& s) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 60)),
       [&s](const std::string& dead) {
         s.kill(dead);
         s.at(Moment::kClosed, 1, [&s, dead](const std::string& name) {
           for (SimWorker* other : s.others(name))
             if (other->name() != dead) return s.kill(other->name());
         });
       });
}

// Records leave every 200 ms.
void only_one_applied(Script& s, int64_t hold_ms) {
  s.one_ahead(static_cast<uint64_t>(s.between(1, 40)), hold_ms,
              [&s](const std::string& ahead) { s.kill(ahead); });
}

void source_dies(Script& s) {
  s.one_ahead(static_cast<uint64_t>(s.between(1, 40)), 30, [&s](const std::string& ahead) {
    s.kill(s.others(ahead).front()->name());
    s.at(Moment::kTransfer, 1, [&s, ahead](const std::string&) {
      s.later(s.between(0, 30), [&s, ahead] { s.kill(ahead); });
    });
  });
}

void all_die_between_batches(Script& s) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(20, 70)),
       [&s](const std::string&) { s.later(s.between(0, 200), [&s] { s.kill_all_workers(); }); });
}

// A check finds a damage and the run goes back. Before it is where it was, everything is lost.
void all_die_after_rollback(Script& s) {
  s.damage_at(9, Damage::kWeights);
  s.at(
      Moment::kApplied,
      [&s](const SimWorker& w) {
        return w.trainer()->state().step == 10 && has_rolled_back(s.world());
      },
      [&s](const std::string&) { s.later(0, [&s] { s.cluster().lose_everything(); }); });
}

// The same, later. The undone steps have left checkpoints that were dropped before, the journal has
// the records up to one of them again, and the checkpoint that the run wrote of these steps is
// torn. All members held the same weights of a wrong sum, so the checkpoints counted.
void all_die_among_dropped(Script& s) {
  const auto again = [&s](Step step) {
    return [&s, step](const SimWorker& w) {
      return w.trainer()->state().step == step && has_rolled_back(s.world());
    };
  };
  s.world().disk.keeps_dropped = true;
  s.damage_at(9, Damage::kGradients);
  s.at(Moment::kApplied, again(9),
       [&s](const std::string&) { s.world().disk.tears_checkpoint = true; });
  s.at(Moment::kApplied, again(11),
       [&s](const std::string&) { s.later(20, [&s] { s.cluster().lose_everything(); }); });
}

void dies_in_evaluation(Script& s) {
  s.at(Moment::kEvaluating, static_cast<uint64_t>(s.between(1, 8)),
       [&s](const std::string& name) { s.later(s.between(0, 6), [&s, name] { s.kill(name); }); });
}

// All members have passed the gate of the evaluation. A report that only the writer makes is not
// sent yet, and the others may be in the next step.
void writer_dies_after_evaluation(Script& s) {
  const auto left = std::make_shared<int64_t>(s.between(1, 3));
  s.at(
      Moment::kEvaluated,
      [left](const SimWorker& w) { return w.trainer()->is_writer() && --*left == 0; },
      [&s](const std::string& name) { s.kill(name); });
}

// Other workers take the places of the dead while evaluations decide where the run ends.
void others_join_with_patience(Script& s) {
  for (const uint64_t nth : {s.between(1, 20), s.between(30, 60)})
    s.at(Moment::kApplied, static_cast<uint64_t>(nth), [&s](const std::string& name) {
      s.later(s.between(0, 20), [&s, name] { s.kill(name); });
    });
}

// All members are at the end by patience. The writer, which has to tell all, dies.
void writer_dies_where_patience_ends(Script& s) {
  const Step last = s.world().end();
  s.at(
      Moment::kEvaluated,
      [last](const SimWorker& w) {
        return w.trainer()->is_writer() && w.trainer()->state().step == last;
      },
      [&s](const std::string& name) { s.later(s.between(0, 10), [&s, name] { s.kill(name); }); });
}

// A check finds a damage, and the run goes back to before its best evaluation, again and again.
void goes_back_across_the_best(Script& s) {
  s.damage_at(static_cast<Step>(s.between(5, 8)), Damage::kWeights);
  s.damage_at(static_cast<Step>(s.between(13, 16)), Damage::kWeights);
}

// The best evaluation of the whole run. The others train on, so no process has its state any more.
void writer_dies_as_it_keeps_the_best(Script& s) {
  const Step best = s.world().track_until(s.world().options.steps).best.step;
  s.at(
      Moment::kEvaluated,
      [best](const SimWorker& w) {
        return w.trainer()->is_writer() && w.trainer()->state().step == best;
      },
      [&s](const std::string&) { s.world().disk.tears_checkpoint = true; });
}

void writer_dies_at_last_step(Script& s) {
  const Step last = s.world().options.steps;
  s.at(
      Moment::kApplied,
      [last](const SimWorker& w) {
        return w.trainer()->is_writer() && w.trainer()->state().step == last;
      },
      [&s](const std::string& name) { s.later(s.between(0, 40), [&s, name] { s.kill(name); }); });
}

void writer_dies_before_ack(Script& s) {
  s.at(Moment::kFinalWritten, 1, [&s](const std::string& name) { s.kill(name); });
}

void one_of_two_dies(Script& s) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 60)),
       [&s](const std::string& name) { s.kill(name); });
}

void node_dies(Script& s) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(4, 60)), [&s](const std::string&) {
    s.later(0, [&s] { s.cluster().lose_node(1, s.between(0, 1) == 0); });
    s.later(s.between(1'000, 8'000), [&s] {
      if (!s.cluster().is_ending()) s.cluster().bring_back_node(1);
    });
  });
}

// Two generations pass during the stop.
void stopped_before_publishing(Script& s) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 40)),
       [&s](const std::string& name) {
         s.worker(name)->stop();
         s.later(1'600, [&s, name] {
           const auto others = s.others(name);
           if (!others.empty()) s.kill(others.front()->name());
         });
         s.later(1'900, [&s, name] {
           if (SimWorker* stopped = s.worker(name)) stopped->go_on();
         });
       });
}

// The writer writes its checkpoint only when it goes on, while the new writer writes a newer one.
void old_writer_wakes_up(Script& s) {
  s.at(
      Moment::kApplied,
      [](const SimWorker& w) { return w.trainer()->is_writer() && w.trainer()->state().step == 8; },
      [&s](const std::string& name) {
        s.worker(name)->stop();
        s.at(
            Moment::kCheckpointWritten, [name](const SimWorker& w) { return w.name() != name; },
            [&s, name](const std::string&) {
              if (SimWorker* stopped = s.worker(name)) stopped->go_on();
            });
      });
}

}  // namespace

std::vector<Scenario> scenarios_of_deaths() {
  WorldOptions checked = workers(1, 3);
  checked.check_every = 4;
  checked.checkpoint_every = 2;
  WorldOptions rarely = checked;
  rarely.check_every = 8;
  WorldOptions longer = workers(2, 2);
  longer.steps = 60;
  WorldOptions patient = workers(2, 2);
  patient.steps = 80;
  patient.eval_every = 3;
  patient.patience = 6;
  patient.best = "accuracy";
  WorldOptions best = checked;
  best.eval_every = 1;
  best.checkpoint_every = 2;
  best.best = "loss";
  WorldOptions kept = workers(2, 2);
  kept.steps = 60;
  kept.eval_every = 1;
  kept.best = "loss";
  return {
      {"half-read", workers(1, 3), dies_half_read, in_place},
      {"answer-while-applying", workers(1, 3), dies_while_applying, in_place},
      {"second-death-during-answers", workers(2, 2), dies_during_answers, in_place},
      {"only-one-applied", workers(1, 3), [](Script& s) { only_one_applied(s, 15); }, in_place},
      {"only-one-applied-and-said-so", workers(1, 3), [](Script& s) { only_one_applied(s, 350); },
       finished},
      {"source-dies-half-way", workers(2, 2), source_dies, finished_or_suspected},
      {"all-die-between-batches", workers(2, 2), all_die_between_batches, finished},
      {"all-die-after-a-rollback", checked, all_die_after_rollback, finished},
      {"all-die-among-dropped-checkpoints", rarely, all_die_among_dropped, finished},
      {"death-in-evaluation", workers(2, 2), dies_in_evaluation, in_place},
      {"writer-dies-after-an-evaluation", workers(2, 2), writer_dies_after_evaluation, in_place},
      {"others-join-with-patience", patient, others_join_with_patience, finished},
      {"writer-dies-where-patience-ends", patient, writer_dies_where_patience_ends, finished},
      {"goes-back-across-the-best", best, goes_back_across_the_best, finished},
      {"writer-dies-as-it-keeps-the-best", kept, writer_dies_as_it_keeps_the_best, finished},
      {"writer-dies-at-the-last-step", workers(2, 2), writer_dies_at_last_step, finished},
      {"writer-dies-before-its-answer", workers(2, 2), writer_dies_before_ack, finished},
      {"one-of-two-workers", workers(1, 2), one_of_two_dies, in_place},
      {"one-of-two-nodes", workers(2, 2), node_dies, in_place},
      {"stopped-before-publishing", longer, stopped_before_publishing, in_place},
      {"old-writer-wakes-up", longer, old_writer_wakes_up, in_place},
  };
}

}  // namespace lockstep::sim
