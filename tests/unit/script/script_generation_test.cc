// Tests what an engine of a script takes over from a generation or a state, and what it passes on
// to the script.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/work_in_hand.h"
#include "tests/support/fails_with.h"
#include "tests/unit/script/script_slot_world.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class ScriptGeneration : public ScriptSlot {
 protected:
  // A script whose slots are all well, and that hears of everything else.
  Script notes(const std::function<void(const ls_order&, ls_reply&)>& note) {
    return [this, note](const ls_order& order, ls_reply& reply) {
      if (order.kind == LS_SLOT) compute();
      if (order.kind == LS_EVAL) reply.loss = 2;
      if (order.kind != LS_SLOT) note(order, reply);
    };
  }
  Script is_well() {
    return notes([](const ls_order&, ls_reply&) {});
  }
  std::vector<double> rates() const {
    std::vector<double> all;
    for (const StepOutcome& outcome : outcomes_) all.push_back(outcome.record.lr());
    return all;
  }
};

TEST_F(ScriptGeneration, BehindAClosedGateTheScriptAppliesNothing) {
  gate_.try_enter = [] { return false; };
  size_t applies = 0;
  EXPECT_THAT(run(1, notes([&](const ls_order&, ls_reply&) { ++applies; })),
              FailsWith(Code::kAborted, Says("closed before step 0")));
  EXPECT_EQ(applies, 0u);
  EXPECT_EQ(engine_->applied_steps(), 0u);
}

TEST_F(ScriptGeneration, TheScriptAppliesAStepWithinTheGate) {
  bool is_inside = false;
  gate_.try_enter = [&] { return is_inside = true; };
  gate_.leave = [&] { is_inside = false; };
  std::vector<bool> applies;
  EXPECT_TRUE(
      run(2, notes([&](const ls_order&, ls_reply&) { applies.push_back(is_inside); })).is_ok());
  EXPECT_THAT(applies, ElementsAre(true, true));
  EXPECT_FALSE(is_inside);
}

TEST_F(ScriptGeneration, AnInstalledStateBringsItsLearningRate) {
  installs_ = 3;
  EXPECT_TRUE(live(is_well(), [&] { return step(); }).is_ok());
  EXPECT_THAT(rates(), ElementsAre(0.5));
}

TEST_F(ScriptGeneration, AnApplyAndTheCodeAfterAnEpochSayTheRateOfTheNextStep) {
  const Script script = notes(
      [&](const ls_order& order, ls_reply&) { lrs_[0] = order.kind == LS_EDGE ? 0.75 : 0.25; });
  EXPECT_TRUE(live(script, [&] {
                LOCKSTEP_RETURN_IF_ERROR(step());
                LOCKSTEP_RETURN_IF_ERROR(step());
                LOCKSTEP_RETURN_IF_ERROR(engine_->cross_edge(false).status());
                return step();
              }).is_ok());
  EXPECT_THAT(rates(), ElementsAre(0.125, 0.25, 0.75));
}

TEST_F(ScriptGeneration, TheScriptIsShownTheLastEvaluation) {
  std::vector<std::pair<Step, double>> shown;
  const Script script = notes([&](const ls_order& order, ls_reply&) {
    if (order.kind == LS_EDGE || order.kind == LS_APPLY)
      shown.emplace_back(order.evaluated.step, order.evaluated.loss);
  });
  view_.evaluated = {.step = 9, .loss = 4, .correct = 0, .samples = 4};
  installs_ = 11;
  EXPECT_TRUE(live(script, [&] {
                LOCKSTEP_RETURN_IF_ERROR(engine_->cross_edge(false).status());
                LOCKSTEP_RETURN_IF_ERROR(engine_->evaluate().status());
                LOCKSTEP_RETURN_IF_ERROR(engine_->cross_edge(false).status());
                return step();
              }).is_ok());
  EXPECT_THAT(shown, ElementsAre(Pair(9u, 4.0), Pair(11u, 2.0), Pair(11u, 2.0)));
}

TEST_F(ScriptGeneration, AnEvaluationIsOfTheEpochOfTheLastStepAndHasTheRateOfTheNextOne) {
  installs_ = 10;
  std::vector<wire::EvalReport> reports;
  EXPECT_TRUE(live(is_well(), [&]() -> Status {
                for (int i = 0; i < 2; ++i) {
                  LOCKSTEP_ASSIGN_OR_RETURN(wire::EvalReport report, engine_->evaluate());
                  reports.push_back(std::move(report));
                  LOCKSTEP_RETURN_IF_ERROR(step());
                }
                return Status::ok();
              }).is_ok());
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].epoch(), 0u) << "10 steps are an epoch";
  EXPECT_EQ(reports[1].epoch(), 1u);
  EXPECT_EQ(reports[0].lr(), 0.5);
}

TEST_F(ScriptGeneration, TheCodeAfterAnEpochKnowsWhetherItIsTheLastAndWhoIsTheWriter) {
  view_.is_writer = true;
  std::vector<std::pair<bool, bool>> edges;
  const Script script = notes([&](const ls_order& order, ls_reply&) {
    if (order.kind == LS_EDGE) edges.emplace_back(order.is_done, order.is_writer);
  });
  EXPECT_TRUE(live(script, [&] {
                LOCKSTEP_RETURN_IF_ERROR(step());
                LOCKSTEP_RETURN_IF_ERROR(engine_->cross_edge(false).status());
                return engine_->cross_edge(true).status();
              }).is_ok());
  EXPECT_THAT(edges, ElementsAre(Pair(false, true), Pair(true, true)));
}

TEST_F(ScriptGeneration, TheCodeAfterAnEpochDrawsOtherNumbersThanAnApply) {
  std::vector<uint32_t> seeds;
  const Script script =
      notes([&](const ls_order& order, ls_reply&) { seeds.push_back(order.task.seed); });
  EXPECT_TRUE(live(script, [&] {
                LOCKSTEP_RETURN_IF_ERROR(step());
                LOCKSTEP_RETURN_IF_ERROR(step());
                return engine_->cross_edge(false).status();
              }).is_ok());
  EXPECT_THAT(seeds, ElementsAre(slot_seed(0, 0, 2), slot_seed(0, 1, 2), slot_seed(0, 2, 3)));
}

TEST_F(ScriptGeneration, TheSlotsThatComeBeginAtTheStateAndNoneIsLeftOut) {
  installs_ = 3;
  view_.skips.add(3, 1, 2);
  std::vector<std::pair<Step, uint32_t>> slots;
  EXPECT_TRUE(live(is_well(), [&] {
                for (const uint32_t most : {2, 1})
                  for (const ls_task& task : engine_->upcoming(most))
                    slots.emplace_back(task.step, task.slot);
                return Status::ok();
              }).is_ok());
  EXPECT_THAT(slots, ElementsAre(Pair(3u, 0u), Pair(4u, 0u), Pair(4u, 1u)));
}

TEST_F(ScriptGeneration, ASlotIsReadUntilTheScriptHasItsSamplesAndComputedUntilItsStepIsSummed) {
  WorkInHand in_hand = WorkInHand::make().value();
  view_.in_hand = &in_hand;
  using Slots = std::vector<SlotInHand>;
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply&) {
                if (order.kind != LS_SLOT) {
                  EXPECT_EQ(in_hand.get().slots, Slots{});
                  return;
                }
                const SlotInHand read{.step = 0, .slot = order.task.slot, .is_read = true};
                EXPECT_EQ(in_hand.get().slots.front(), read);
                compute();
                const Slots computed{{.step = 0, .slot = order.task.slot, .is_read = false}};
                EXPECT_EQ(in_hand.get().slots, computed);
              }).is_ok());
  EXPECT_THAT(in_hand.get().slots, IsEmpty());
}

}  // namespace
}  // namespace lockstep
