// The best checkpoint, and runs that end for want of better evaluations.
#include "coordinator/state/evaluations.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 25 steps an epoch, 10 evaluated samples.
struct EvaluatedWorld : World {
  explicit EvaluatedWorld(Options o) : World(std::move(o)) { train(); }

  // Both workers go on to `step` and evaluate there.
  void evaluate(Step step, uint64_t correct) {
    for (const ConnectionId c : {1u, 2u}) {
      wire::Envelope e = records(c, ++batch_[c], done_, step);
      wire::EvalReport& eval = *e.mutable_step_records()->add_evals();
      eval.set_step(step);
      eval.set_samples(10);
      eval.set_correct(correct);
      eval.set_loss(1 - 0.1 * static_cast<double>(correct));
      EXPECT_EQ(say(c, e), Reason::kRecordsAccepted);
    }
    done_ = step;
  }
  // Without the evaluation.
  void train_on(Step step) {
    for (const ConnectionId c : {1u, 2u})
      EXPECT_EQ(report(c, ++batch_[c], done_, step), Reason::kRecordsAccepted);
    done_ = step;
  }
  std::vector<Step> kept() const {
    std::vector<Step> steps;
    for (const CheckpointEntry& entry : state.checkpoints) steps.push_back(entry.step);
    return steps;
  }

 private:
  std::map<ConnectionId, uint64_t> batch_;
  Step done_ = 0;
};

Options options_with(const std::string& best, uint32_t patience = 0, Step steps = 100) {
  Options options = small_options(2, steps);
  options.job.mutable_eval()->set_every_steps(5);
  options.job.mutable_checkpoint()->set_best(best);
  options.job.mutable_train()->set_patience(patience);
  return options;
}

TEST(Evaluations, TheBestCheckpointStaysBesideTheNewest) {
  EvaluatedWorld w(options_with("accuracy"));
  uint64_t correct[] = {4, 7, 5, 6, 7, 3};
  for (Step i = 0; i < 6; ++i) {
    w.evaluate(5 * (i + 1), correct[i]);
    EXPECT_EQ(w.checkpoint(1, 5 * (i + 1)), Reason::kCheckpointAccepted);
  }
  EXPECT_THAT(w.kept(), ElementsAre(10, 25, 30));  // of equal ones the first
  EvaluatedWorld plain(options_with("none"));
  for (Step i = 0; i < 6; ++i) {
    plain.evaluate(5 * (i + 1), correct[i]);
    EXPECT_EQ(plain.checkpoint(1, 5 * (i + 1)), Reason::kCheckpointAccepted);
  }
  EXPECT_THAT(plain.kept(), ElementsAre(25, 30));
}

TEST(Evaluations, TheBestUntilEachCheckpointToWhichTheRunMayGoBackStays) {
  Options options = options_with("loss");
  options.job.mutable_train()->set_check_every(15);
  EvaluatedWorld w(options);
  uint64_t correct[] = {4, 3, 2, 5, 6, 7, 8};
  for (Step i = 0; i < 7; ++i) {
    w.evaluate(5 * (i + 1), correct[i]);
    w.state.checks.agreed = i >= 2 ? 15 : 0;
    w.state.checks.same_weights = 5 * (i + 1);
    EXPECT_EQ(w.checkpoint(1, 5 * (i + 1)), Reason::kCheckpointAccepted);
  }
  // If the members disagree now, the run goes back to 15, or to 10 if 15 is damaged, and 5 is its
  // best.
  EXPECT_THAT(w.kept(), ElementsAre(5, 10, 15, 30, 35));
}

// 20 is the best, and its checkpoint never comes.
TEST(Evaluations, TheWayToABestEvaluationWhoseCheckpointWasLostStaysAndThatIsSaid) {
  EvaluatedWorld w(options_with("accuracy"));
  uint64_t correct[] = {4, 7, 5, 9, 6, 3, 5, 5};
  for (Step i = 0; i < 8; ++i) {
    w.evaluate(5 * (i + 1), correct[i]);
    if (i == 3) continue;
    EXPECT_EQ(w.checkpoint(1, 5 * (i + 1)), Reason::kCheckpointAccepted);
  }
  EXPECT_THAT(w.kept(), ElementsAre(10, 15, 35, 40));
  w.kill(1);
  EXPECT_EQ(w.promise_at(2, 40), Reason::kStarted);
  const auto& events = w.journal.events();
  const auto said = std::count_if(events.begin(), events.end(), [](const EventEntry& event) {
    return event.kind == "best_checkpoint_lost" &&
           event.text.find("after step 20") != std::string::npos;
  });
  EXPECT_EQ(said, 1);
}

TEST(Evaluations, ACheckpointStaysUntilItsEvaluationHasCome) {
  EvaluatedWorld w(options_with("accuracy"));
  for (Step step = 5; step <= 20; step += 5)
    EXPECT_EQ(w.checkpoint(1, step), Reason::kCheckpointAccepted);
  EXPECT_THAT(w.kept(), ElementsAre(5, 10, 15, 20));
  for (const auto& [step, correct] : {std::pair<Step, uint64_t>{5, 4}, {10, 7}, {15, 5}, {20, 6}})
    w.evaluate(step, correct);
  EXPECT_EQ(w.checkpoint(1, 25), Reason::kCheckpointAccepted);
  EXPECT_THAT(w.kept(), ElementsAre(10, 15, 20, 25));
}

TEST(Evaluations, WithPatienceTheRunEndsWhereEverybodyEndsIt) {
  EvaluatedWorld w(options_with("accuracy", 2));
  w.evaluate(5, 4);
  w.evaluate(10, 6);
  EXPECT_EQ(end_step(w.state, w.options), 100u);
  w.evaluate(15, 6);
  w.evaluate(20, 5);
  EXPECT_EQ(end_step(w.state, w.options), 20u);
  EXPECT_EQ(w.checkpoint(1, 20, /*final=*/true), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 20), Reason::kLeft);
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 20), Reason::kEndedFinished);
  EXPECT_EQ(w.ends[0].exit_code, 0);
  EXPECT_THAT(w.ends[0].message,
              ::testing::AllOf(HasSubstr("step 20 of 100"), HasSubstr("train.patience"),
                               HasSubstr("step 10")));
}

TEST(Evaluations, OneMayLeaveBeforeTheOthersHaveReportedWhatEndsTheRun) {
  EvaluatedWorld w(options_with("accuracy", 1));
  w.evaluate(5, 4);
  wire::Envelope mine = w.records(1, 2, 5, 10);
  wire::Envelope others = w.records(2, 2, 5, 10);
  for (wire::Envelope* e : {&mine, &others}) {
    wire::EvalReport& eval = *e->mutable_step_records()->add_evals();
    eval.set_step(10);
    eval.set_samples(10);
  }
  EXPECT_EQ(w.say(1, mine), Reason::kRecordsAccepted);
  EXPECT_EQ(w.checkpoint(1, 10, /*final=*/true), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 10), Reason::kLeft);
  EXPECT_EQ(w.say(2, others), Reason::kRecordsAccepted);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 10), Reason::kEndedFinished);
}

// The reports of checkpoints overtake the reports of evaluations, and then all workers die.
TEST(Evaluations, WhatOnlyTheLastCheckpointHasIsReadBeforeTheRunEnds) {
  for (const uint32_t patience : {0u, 1u}) {
    const Step last = patience > 0 ? 10 : 20;
    EvaluatedWorld w(options_with("accuracy", patience, 20));
    w.evaluate(5, 4);
    if (last == 20) {
      w.evaluate(10, 5);
      w.evaluate(15, 6);
    }
    w.train_on(last);
    EXPECT_EQ(w.checkpoint(1, last, /*final=*/true), Reason::kCheckpointAccepted);
    w.kill(2);
    EXPECT_EQ(w.kill(1), Reason::kEndedTerm);
    EXPECT_TRUE(w.ends.empty());
    EXPECT_THAT(w.state.message, HasSubstr("the last evaluation"));
  }
}

TEST(Evaluations, WhoFinishesWhereNothingEndsTheRunHasFailed) {
  EvaluatedWorld w(options_with("accuracy", 2));
  w.evaluate(5, 4);
  EXPECT_EQ(w.checkpoint(1, 5, /*final=*/true), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 5), Reason::kLeft);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 5), Reason::kEndedWorkerFailed);
  EXPECT_EQ(w.ends[0].exit_code, 70);
}

TEST(Evaluations, AnEvaluationWhoseStepsNotAllHaveReportedEndsNothingYet) {
  EvaluatedWorld w(options_with("loss", 1));
  w.evaluate(5, 4);
  wire::Envelope e = w.records(1, 2, 5, 10);
  wire::EvalReport& eval = *e.mutable_step_records()->add_evals();
  eval.set_step(10);
  eval.set_samples(10);
  eval.set_loss(9);
  EXPECT_EQ(w.say(1, e), Reason::kRecordsAccepted);
  EXPECT_EQ(end_step(w.state, w.options), 100u);
  EXPECT_EQ(w.report(2, 2, 5, 10), Reason::kRecordsAccepted);
  EXPECT_EQ(end_step(w.state, w.options), 10u);
}

TEST(Evaluations, AStartTellsTheTrackOfItsStateAndThatTheRunIsOver) {
  EvaluatedWorld w(options_with("accuracy", 1));
  w.evaluate(5, 4);
  EXPECT_EQ(w.checkpoint(1, 5), Reason::kCheckpointAccepted);
  w.evaluate(10, 4);
  w.kill(2);
  EXPECT_EQ(w.promise_at(1, 10), Reason::kStarted);
  const EvalTrack told = track_of(w.started().evals());
  EXPECT_EQ(told.best.step, 5u);
  EXPECT_EQ(told.kept.step, 5u);
  EXPECT_EQ(told.last.step, 10u);
  EXPECT_EQ(told.since, 1u);
}

TEST(Evaluations, ARunThatPatienceHasEndedIsCompleteUntilItIsGivenMore) {
  Options o = options_with("accuracy", 1);
  EvalEntries evals;
  for (const Step step : {5u, 10u}) evals[step] = {1, step, 0, 10, 4, 0.5};
  EXPECT_EQ(phase_after(10, evals, o), Phase::kEnd);
  EXPECT_EQ(phase_after(5, evals, o), Phase::kTrain);
  o.job.mutable_train()->set_patience(2);
  EXPECT_EQ(phase_after(10, evals, o), Phase::kTrain);
}

// Of 10 samples each, after every 5 steps.
EvalEntries evaluations_of(const std::vector<uint64_t>& correct) {
  EvalEntries evals;
  for (const uint64_t right : correct) {
    const Step step = 5 * (evals.size() + 1);
    evals[step] = {1, step, 0, 10, right, 1.0 - 0.1 * static_cast<double>(right)};
  }
  return evals;
}

TEST(Evaluations, AResumeWithLessPatienceThanTheRunHadEndsWhereItStands) {
  const Options o = options_with("accuracy", 2);
  const EvalEntries evals = evaluations_of({7, 6, 6, 6});
  EXPECT_EQ(phase_after(22, evals, o), Phase::kEnd);
  EXPECT_EQ(end_step(evals, 22, 22, o), 22u);
}

TEST(Evaluations, AResumeWithLessPatienceGoesOnAfterABetterEvaluation) {
  const Options o = options_with("accuracy", 2);
  const EvalEntries evals = evaluations_of({6, 5, 5, 7, 6});
  EXPECT_EQ(phase_after(27, evals, o), Phase::kTrain);
  EXPECT_EQ(end_step(evals, 27, 27, o), 100u);
  EvalEntries more = evaluations_of({6, 5, 5, 7, 6, 6, 9});
  EXPECT_EQ(end_step(more, 35, 27, o), 30u);
}

}  // namespace
}  // namespace lockstep::coordinator
