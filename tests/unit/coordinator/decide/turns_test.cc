// Several steps on each batch: what is left out with bad samples, which losses are compared, and
// what the journal keeps of it.
#include <algorithm>

#include "comm/base/limits.h"
#include "coordinator/audit/run_order.h"
#include "coordinator/decide/decide_internal.h"
#include "tests/unit/coordinator/decide/bad_samples.h"
#include "tests/unit/coordinator/decide/open_term.h"

namespace lockstep::coordinator {
namespace {

// Batches of 4 samples in 4 slots, each in 2 turns.
class Turns : public BadSamples {
 protected:
  Turns() {
    w.options.shape.turns = 2;
    w.options.total_steps = 400;
  }

  // Losses of the first turn are 1, of the second 10.
  Reason report_pairs(Step from, Step to, Step bad = ~Step{0}, double loss = kNan) {
    Reason reason = Reason::kNothingDue;
    for (ConnectionId c = 1; c <= 2; ++c) {
      const MemberId id = w.state.by_connection.at(c);
      wire::Envelope e = w.records(c, w.state.members.at(id).acked_batch + 1, from, to);
      for (wire::StepRecord& record : *e.mutable_step_records()->mutable_records())
        record.set_loss(record.step() == bad ? loss : record.step() % 2 == 0 ? 1 : 10);
      reason = w.say(c, e);
      if (is_end(reason)) break;
    }
    return reason;
  }
};

TEST_F(Turns, ALossThatIsNoNumberCostsTheWholeBatch) {
  policy("skip");
  w.train();
  report_pairs(0, 30);
  write_checkpoint(30);
  EXPECT_EQ(report_pairs(30, 40, 33), Reason::kEndedTerm) << "the second turn of its batch";
  ASSERT_EQ(kept().size(), 2u);
  EXPECT_EQ(kept()[0].step, 32u);
  EXPECT_EQ(kept()[1].step, 33u);
  EXPECT_EQ(next_term().base.step, 30u);
  for (const Step step : {32, 33})
    EXPECT_EQ(samples_in(w.state.skips, w.state.generation, step, w.options.shape), 0u);
  EXPECT_EQ(samples_in(w.state.skips, w.state.generation, 34, w.options.shape), 4u);
}

TEST_F(Turns, ASlotIsLeftOutOfTheTurnsToComeOnly) {
  policy("skip");
  w.train();
  std::vector<Action> actions;
  Turn turn{w.now_ms, w.state, w.options, actions};
  skip_slots(turn, {1, 33, {2, 3}, "it killed"});
  skip_slots(turn, {1, 40, {2, 3}, "it killed"});
  ASSERT_EQ(w.state.skips.size(), 3u);
  EXPECT_EQ(w.state.skips[0].step, 33u);
  EXPECT_EQ(w.state.skips[1].step, 40u);
  EXPECT_EQ(w.state.skips[2].step, 41u);
}

TEST_F(Turns, IncidentsAreCountedAndNotTheirSteps) {
  policy("skip");
  w.train();
  std::vector<Action> actions;
  Turn turn{w.now_ms, w.state, w.options, actions};
  for (Step batch = 0; batch < limits::kSkips; ++batch) {
    EXPECT_TRUE(may_skip(turn)) << batch;
    skip_slots(turn, {1, 2 * batch, {0, 1}, "it killed"});
  }
  EXPECT_FALSE(may_skip(turn));
  EXPECT_THAT(what_to_do_about_samples(turn),
              ::testing::HasSubstr(std::to_string(w.state.skips.size()) + " times"));
}

TEST_F(Turns, ASpikeIsOneAmongLossesOfTheSameTurn) {
  policy("stop", 3);
  w.train();
  for (Step from = 0; from < 210; from += 70)
    EXPECT_EQ(report_pairs(from, from + 70), Reason::kRecordsAccepted);
  EXPECT_EQ(report_pairs(210, 212, 210, 10), Reason::kEndedBadLoss)
      << "what is usual in the second turn is none in the first";
}

TEST_F(OpenTerm, HowManyTurnsABatchHasIsPartOfTheRun) {
  const auto in_turns = [](ConnectionId c, uint32_t turns) {
    wire::Register m = script(c);
    m.mutable_facts()->set_turns(turns);
    return m;
  };
  begin(BeginMode::kFirst);
  w.join(1, in_turns(1, 2));
  w.join(2, in_turns(2, 2));
  EXPECT_EQ(stored(kTurnsKey), "2");
  EXPECT_EQ(order_of(w.journal.load()->identity)->shape.turns, 2u);
  has_file_ = false;
  begin(BeginMode::kNextTerm);
  EXPECT_EQ(w.options.shape.turns, 2u);
  EXPECT_EQ(w.options.total_steps % 2, 0u);
  EXPECT_EQ(w.join(1, in_turns(1, 3)), Reason::kRefusedMisfit);
  EXPECT_THAT(last_words(1),
              ::testing::HasSubstr("phases of a batch is 2 in this run and 3 there"));
}

TEST_F(OpenTerm, ARunWithoutTurnsKeepsNothingOfThem) {
  resolve();
  EXPECT_EQ(stored(kTurnsKey), "");
  begin(BeginMode::kNextTerm);
  EXPECT_EQ(w.options.shape.turns, 1u);
}

TEST_F(OpenTerm, ImpossibleTurnsAreRefused) {
  begin(BeginMode::kFirst);
  wire::Register m = script(1);
  m.mutable_facts()->set_turns(limits::kTurns + 1);
  EXPECT_NE(w.join(1, m), Reason::kRegistered);
}

}  // namespace
}  // namespace lockstep::coordinator
