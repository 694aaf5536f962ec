// Losses that are no number or a spike, from what decide() does to the term that goes on without
// their step.
#include <algorithm>
#include <cmath>

#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/decide/bad_samples.h"

namespace lockstep::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(BadSamples, ByDefaultALossThatIsNoNumberStopsTheRunAndNoDamagedCheckpointSurvives) {
  w.train();
  both_report(0, 30);
  write_checkpoint(10);
  write_checkpoint(30);
  write_checkpoint(40);
  EXPECT_EQ(both_report(30, 40, 32), Reason::kEndedBadLoss);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  // Step 32 of 4 samples, counted from 0, is the eighth of the second epoch of 25.
  EXPECT_THAT(w.ends[0].message, AllOf(Names("step 33", "[28, 32)", "epoch 2"), Says("nan")));
  EXPECT_THAT(w.ends[0].message, Names("step-0000000030"));
  EXPECT_THAT(w.ends[0].message,
              Advises("lockstep replay /run --step 33", "train.on_bad_samples=skip"));
  EXPECT_TRUE(kept().empty());
  const JournalContents contents = *w.journal.load();
  for (const CheckpointEntry& entry : contents.checkpoints) {
    EXPECT_EQ(entry.state == CheckpointState::kComplete, entry.step <= 30) << entry.name;
  }
  EXPECT_EQ(contents.ledger.at(0).last->step, 30u);
  EXPECT_EQ(w.history.size(), 32u);  // the bad one never came into it
  EXPECT_EQ(begin(BeginMode::kResume).base.step, 30u);
}

TEST_F(BadSamples, WithoutAnyCheckpointBeforeTheStepTheRunStopsAtItsInitialWeights) {
  w.train();
  write_checkpoint(5);
  EXPECT_EQ(both_report(0, 10, 3, INFINITY), Reason::kEndedBadLoss);
  EXPECT_THAT(w.ends[0].message, HasSubstr("(inf)"));
  EXPECT_THAT(w.ends[0].message, HasSubstr("no checkpoint"));
  EXPECT_EQ(w.state.completed, 0u);
  const Beginning b = begin(BeginMode::kResume);
  EXPECT_EQ(b.base.step, 0u);
  EXPECT_EQ(b.base_checkpoint, "");
}

TEST_F(BadSamples, SkipGoesBackToBeforeTheStepAndOnWithoutIt) {
  policy("skip");
  w.train();
  both_report(0, 30);
  write_checkpoint(10);
  write_checkpoint(30);
  write_checkpoint(40);
  EXPECT_EQ(both_report(30, 40, 32), Reason::kEndedTerm);
  ASSERT_EQ(w.term_ends.size(), 1u);
  EXPECT_TRUE(w.ends.empty());
  EXPECT_TRUE(w.is_durable("samples_skipped"));
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].step, 32u);
  EXPECT_EQ(kept()[0].slots, (SlotRun{0, 4}));
  EXPECT_EQ(kept()[0].reason, "its loss is not a finite number (nan)");

  const Beginning b = next_term();
  EXPECT_EQ(b.base.step, 30u);
  ASSERT_EQ(w.started().skipped_size(), 1);
  EXPECT_EQ(w.started().skipped(0).step(), 32u);
  EXPECT_EQ(w.started().skipped(0).slots().end(), 4u);
  EXPECT_EQ(both_report(30, 40), Reason::kRecordsAccepted);
  EXPECT_EQ(w.state.completed, 40u);
  // The step's line says what became of the step; its numbers count no sample.
  const auto line = std::find_if(w.history.rbegin(), w.history.rend(),
                                 [](const StepEntry& step) { return step.step == 32; });
  ASSERT_NE(line, w.history.rend());
  EXPECT_EQ(line->samples, 0u);
  EXPECT_EQ(line->loss, 0.0);
  EXPECT_FALSE(newest_sound(*w.journal.load()).has_value());
  EXPECT_EQ(begin(BeginMode::kResume).skips.size(), 1u);  // for good
}

TEST_F(BadSamples, ARecordThatCountsWhatIsLeftOutEndsTheRun) {
  policy("skip");
  w.train();
  EXPECT_EQ(both_report(0, 10, 2), Reason::kEndedTerm);
  next_term();
  EXPECT_EQ(w.report(1, 1, 0, 5), Reason::kEndedCorruption);
  EXPECT_THAT(w.ends[0].message, Says("4 samples", "instead of 0"));
}

TEST_F(BadSamples, ACrashBetweenTheSkipAndTheCutLosesNeither) {
  for (const BeginMode mode : {BeginMode::kTakeOver, BeginMode::kResume}) {
    SCOPED_TRACE(static_cast<int>(mode));
    policy("skip");
    if (mode == BeginMode::kTakeOver) w.train();
    const Step from = w.state.completed;
    both_report(from, from + 10);
    write_checkpoint(from + 10);
    write_checkpoint(from + 20);
    ASSERT_EQ(both_report(from + 10, from + 20, from + 12), Reason::kEndedTerm);
    ASSERT_EQ(newest_sound(*w.journal.load()), from + 12);
    // The coordinator dies here. Its members still hold the result of the step, so no coordinator
    // goes on with them.
    const Beginning b = begin(mode);
    EXPECT_FALSE(b.living.has_value());
    EXPECT_EQ(b.base.step, from + 10);
    EXPECT_FALSE(newest_sound(*w.journal.load()).has_value());
    w.train();
    EXPECT_TRUE(skips_in(w.state.skips, w.state.generation).contains(from + 12, 0));
    EXPECT_EQ(both_report(from + 10, from + 20), Reason::kRecordsAccepted);
  }
}

TEST_F(BadSamples, ACoordinatorThatTakesOverKnowsWhatIsLeftOutAndJudgesOn) {
  policy("skip", 3);
  w.train();
  both_report(0, 50);
  ASSERT_EQ(both_report(50, 60, 52), Reason::kEndedTerm);
  next_term();
  for (Step step = 0; step < 120; step += 60) {
    ASSERT_EQ(both_report(step, step + 60), Reason::kRecordsAccepted);
  }
  const Beginning b = begin(BeginMode::kTakeOver);
  ASSERT_TRUE(b.living.has_value());
  EXPECT_EQ(b.losses.recent.size(), kLossWindow);
  EXPECT_EQ(b.losses.recent.back().first, 119u);
  wire::Register m = World::registration(0);
  for (ConnectionId c = 1; c <= 2; ++c) {
    m = World::registration(static_cast<uint32_t>(c) - 1);
    m.set_member(b.living->start.members(static_cast<int>(c) - 1).member());
    w.join(c, m);
  }
  EXPECT_EQ(both_report(120, 122, 121, 6.5), Reason::kEndedTerm);  // a spike
  EXPECT_EQ(w.state.skips.size(), 2u);
}

TEST_F(BadSamples, ASpikeIsMeasuredAgainstTheMedianOfAHundredSteps) {
  policy("stop", 3);
  w.train();
  both_report(0, 60, 30, 1000);  // so early nothing is a spike
  EXPECT_EQ(both_report(60, 99, 70, 1000), Reason::kRecordsAccepted);
  EXPECT_EQ(both_report(99, 101, 100, 6), Reason::kRecordsAccepted);  // three times 2, not more
  EXPECT_EQ(both_report(101, 103, 102, 6.01), Reason::kEndedBadLoss);
  EXPECT_THAT(w.ends[0].message, Says("6.01", "3 times", "median"));
}

TEST_F(BadSamples, WithoutASettingNoSpikeIsLookedFor) {
  w.train();
  both_report(0, 100);
  EXPECT_EQ(both_report(100, 120, 110, 1e30), Reason::kRecordsAccepted);
}

TEST_F(BadSamples, WhenTheNextStepIsNoBetterTheSamplesAreNotToBlame) {
  policy("skip");
  w.train();
  both_report(0, 30);
  write_checkpoint(10);
  write_checkpoint(20);
  ASSERT_EQ(both_report(30, 40, 32), Reason::kEndedTerm);
  EXPECT_EQ(next_term().base.step, 20u);
  EXPECT_EQ(both_report(20, 40, 33), Reason::kEndedBadLoss);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  EXPECT_THAT(w.ends[0].message, HasSubstr("step 34"));
  EXPECT_THAT(w.ends[0].message, Says("the samples are not the cause"));
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(BadSamples, AfterTheLastOneAllowedTheRunStops) {
  policy("skip");
  for (size_t i = 0; i < limits::kSkips; ++i) {
    const std::vector<JournalEntry> entry{SkipEntry{0, 2 * i, {1, 2}, "before"}};
    ASSERT_TRUE(w.journal.commit(entry, 0).is_ok());
  }
  begin(BeginMode::kFirst);
  w.train();
  EXPECT_EQ(w.started().skipped_size(), static_cast<int>(limits::kSkips));
  EXPECT_EQ(both_report(0, 100, 21), Reason::kEndedBadLoss);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  EXPECT_THAT(w.ends[0].message, Says("64 times"));
}

TEST_F(BadSamples, ABadLossWhileTheRunIsToStopIsSkippedByTheResume) {
  policy("skip");
  w.train();
  both_report(0, 30);
  write_checkpoint(20);
  write_checkpoint(30);
  w.happen(StopSignal{"SIGTERM"});
  write_checkpoint(35);
  EXPECT_EQ(both_report(30, 36, 32), Reason::kEndedStopped);
  EXPECT_EQ(w.ends[0].exit_code, 75);
  EXPECT_THAT(w.ends[0].message, HasSubstr("step-0000000030"));
  EXPECT_EQ(begin(BeginMode::kResume).base.step, 30u);
}

// A checkpoint may be written long before the steps before it have been judged, and the disk may
// damage the one that the run goes back to.
TEST_F(BadSamples, TwoJudgedCheckpointsAreKeptAndAllWhoseStepsAreNotJudged) {
  policy("skip");
  w.train();
  both_report(0, 12);
  const auto kept_steps = [this] {
    std::vector<Step> steps;
    for (const CheckpointEntry& entry : w.state.checkpoints) steps.push_back(entry.step);
    return steps;
  };
  for (const Step step : {5, 10, 20, 30, 40}) write_checkpoint(step);
  EXPECT_EQ(kept_steps(), (std::vector<Step>{5, 10, 20, 30, 40}));
  both_report(12, 24);
  EXPECT_EQ(kept_steps(), (std::vector<Step>{10, 20, 30, 40}));
  EXPECT_EQ(both_report(24, 40, 25), Reason::kEndedTerm);
  damaged_.insert(checkpoint_name({20, 1, 1}));
  EXPECT_EQ(begin(BeginMode::kNextTerm).base.step, 10u);
}

TEST_F(BadSamples, TheWriterIsToldToDeleteACheckpointWhenTheStepsAfterItAreJudged) {
  w.train();
  for (const Step step : {10, 20, 30}) write_checkpoint(step);
  both_report(0, 12);
  EXPECT_EQ(w.state.checkpoints.size(), 3u);
  both_report(12, 35);
  std::vector<std::string> dropped;
  for (const wire::Envelope& sent : w.sent(1))
    for (const std::string& name : sent.checkpoint_ack().drop()) dropped.push_back(name);
  EXPECT_EQ(dropped, (std::vector<std::string>{checkpoint_name({10, 1, 1})}));
  EXPECT_EQ(w.state.checkpoints.size(), 2u);
}

// The other member's report died with it, so the coordinator judges the step when no member can
// redo it.
TEST_F(BadSamples, NobodyBeginsWithAStateThatIsKnownToBeSpoilt) {
  policy("skip");
  w.train();
  wire::Envelope e = w.records(1, 1, 0, 10);
  e.mutable_step_records()->mutable_records(5)->set_loss(kNan);
  EXPECT_EQ(w.say(1, e), Reason::kRecordsAccepted);
  EXPECT_EQ(w.kill(2), Reason::kRegrouped);
  EXPECT_EQ(w.promise_at(1, 10), Reason::kEndedTerm);
  for (const wire::Envelope& sent : w.sent(1)) EXPECT_FALSE(sent.has_start());
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].step, 5u);
  EXPECT_EQ(w.state.completed, 5u);
}

// Its members may have begun the planned generation already, and were not told of the skip.
TEST_F(BadSamples, APlannedGenerationIsNoneThatLeavesTheStepOut) {
  policy("skip");
  w.train();
  w.options.workers = 3;
  w.join(3);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(both_report(0, 10, 5), Reason::kEndedTerm);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].generation, 2u);
  EXPECT_FALSE(skips_in(kept(), 2).contains(5, 0));
  EXPECT_EQ(newest_sound(*w.journal.load()), 5u);
  next_term();
  EXPECT_TRUE(skips_in(kept(), w.state.generation).contains(5, 0));
}

// No coordinator judged the step while its records were incomplete, so the checkpoint after it does
// not count.
TEST_F(BadSamples, AResumePassesOverACheckpointThatHasSeenAnUnjudgedBadStep) {
  w.train();
  both_report(0, 10);
  write_checkpoint(10);
  write_checkpoint(15);
  wire::Envelope e = w.records(1, 2, 10, 16);
  e.mutable_step_records()->mutable_records(2)->set_loss(kNan);
  EXPECT_EQ(w.say(1, e), Reason::kRecordsAccepted);  // the other one never reports
  EXPECT_EQ(begin(BeginMode::kResume).base.step, 10u);
}

TEST_F(BadSamples, WhereEveryCheckpointHasSeenAnUnjudgedBadStepTheRunBeginsAgain) {
  w.train();
  both_report(0, 10);
  write_checkpoint(15);
  wire::Envelope e = w.records(1, 2, 10, 16);
  e.mutable_step_records()->mutable_records(2)->set_loss(kNan);
  w.say(1, e);
  EXPECT_EQ(begin(BeginMode::kResume).base.step, 0u);
}

}  // namespace
}  // namespace lockstep::coordinator
