// Evaluations belong to a state: a member that holds a state knows the evaluations before it. Every
// member ends at the step that the rule of train.patience gives over the lineage's evaluations.
//
//  - a member that makes an evaluation has the undisturbed run's track until there
//  - so does a member that begins with a state, without an evaluation due at that very step
//  - a member that comes to the end is where the undisturbed run ends
//  - a generation that starts tells its members what the journal has
//  - at the end of the run every evaluation that was due is in the journal and in evals.jsonl
#include <fstream>
#include <set>
#include <string>

#include "comm/run/evaluation/evaluation_due.h"
#include "coordinator/journal/eval_file.h"
#include "coordinator/state/evaluations.h"
#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

std::string text_of(const EvalTrack& track) {
  return "the best after step " + std::to_string(track.best.step) + ", the last after step " +
         std::to_string(track.last.step) + ", " + std::to_string(track.since) +
         " since the best one";
}

// check_best.cc compares which checkpoint is kept.
bool knows_same(const EvalTrack& a, const EvalTrack& b) {
  return a.best == b.best && a.last == b.last && a.since == b.since;
}

class EvaluationCheck final : public Check {
 public:
  EvaluationCheck(World& world, SharedLedger ledger, SharedJudged judged)
      : world_(world),
        ledger_(std::move(ledger)),
        judged_(std::move(judged)),
        when_(evaluations_of(world_.job, world_.facts, world_.shape)) {}

  void on_evaluated(const Evaluated& evaluated) override {
    if (!judged_->covers(world_, evaluated.generation)) return;
    compare(evaluated.process + " has evaluated in generation ", evaluated.generation,
            evaluated.track, evaluated.track.last.step);
  }

  void on_installed(const Installed& installed) override {
    if (!judged_->covers(world_, installed.generation)) return;
    const bool is_before =
        installed.at.phase == Phase::kEval && installed.track.last.step != installed.at.step;
    compare(installed.process + " begins with a state of generation ", installed.generation,
            installed.track, installed.at.step - (is_before ? 1 : 0));
  }

  void on_finished(const Finished& finished) override {
    if (!judged_->covers(world_, finished.generation)) return;
    const Step end = world_.end(finished.generation);
    if (finished.at.step != end)
      world_.fail("patience", finished.process + " ends after step " +
                                  std::to_string(finished.at.step) +
                                  ", the undisturbed run after step " + std::to_string(end));
  }

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry);
      if (generation == nullptr) continue;
      if (generation->state == coordinator::GenerationState::kPlanned)
        planned_.insert(generation->generation);
      // A planned generation tells what was true when it was planned.
      if (generation->state == coordinator::GenerationState::kStarted &&
          planned_.count(generation->generation) == 0)
        check_start(*generation);
    }
  }

  // Every evaluation that was due was made, of the weights of the undisturbed run.
  void at_end() override {
    std::string lines;
    for (const auto& [step, eval] : ledger_->evals()) lines += coordinator::eval_line(eval, false);
    std::ifstream file(world_.directory + "/evals.jsonl");
    if (std::string(std::istreambuf_iterator<char>(file), {}) != lines)
      world_.fail("evaluation", "evals.jsonl is not what the journal says");
    for (Step step = 0; step <= world_.end(); ++step) check_made(step);
  }

 private:
  void check_made(Step step) {
    const auto found = ledger_->evals().find(step);
    const bool is_made = found != ledger_->evals().end();
    if (is_made && step % world_.options.turns != 0)
      world_.fail("I11",
                  "an evaluation was made within a batch, after step " + std::to_string(step));
    if (is_made != evaluation_due(when_, step, world_.last()))
      return world_.fail("evaluation", std::string(is_made ? "an" : "no") +
                                           " evaluation is in the journal after step " +
                                           std::to_string(step));
    if (is_made &&
        found->second.correct != world_.evaluation_of(world_.reference.after(step)).correct())
      world_.fail("evaluation", "the evaluation after step " + std::to_string(step) +
                                    " is not of the undisturbed run's weights");
  }

  void compare(const std::string& who, Generation generation, const EvalTrack& knows, Step until) {
    const EvalTrack right = world_.track_until(until, generation);
    if (!knows_same(knows, right))
      world_.fail("patience", who + std::to_string(generation) + " after step " +
                                  std::to_string(until) + " and knows of " + text_of(knows) +
                                  "; right is " + text_of(right));
  }

  void check_start(const coordinator::GenerationEntry& entry) {
    wire::Start start;
    if (!start.ParseFromString(entry.start))
      return world_.fail("patience", "a start in the journal cannot be read");
    const BestBy by = best_by(world_.options.best);
    EvalTrack right;
    for (const auto& [step, eval] : ledger_->at_start(entry.generation).evals)
      if (step <= start.resume().step()) right.add(coordinator::mark_of(eval), by);
    const EvalTrack told = track_of(start.evals());
    if (!knows_same(told, right))
      world_.fail("patience", "generation " + std::to_string(entry.generation) + " is told of " +
                                  text_of(told) + "; the journal has " + text_of(right));
  }

  World& world_;
  const SharedLedger ledger_;
  const SharedJudged judged_;
  const Evaluations when_;
  std::set<Generation> planned_;
};

}  // namespace

std::unique_ptr<Check> make_evaluation_check(World& world, SharedLedger ledger,
                                             SharedJudged judged) {
  return std::make_unique<EvaluationCheck>(world, std::move(ledger), std::move(judged));
}

}  // namespace lockstep::sim
