// Steps whose slots a thread computes that stands for Python (script_world.h).
#include "worker/script/script_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/run/plan/digest.h"
#include "tests/support/fails_with.h"
#include "tests/unit/script/script_world.h"

namespace lockstep {
namespace {

TEST(ScriptEngine, EveryWorldHasTheSameRecordsAndWeights) {
  for (const bool has_counts : {false, true}) {
    for (const bool has_late : {false, true}) {
      const WorldOptions options{.has_counts = has_counts, .has_late = has_late};
      ScriptWorld alone(kWorlds[0], options);
      alone.run(6);
      ASSERT_EQ(alone.hashes(0).size(), 6U) << alone.ranks[0]->last.message();
      for (const auto& runs : kWorlds) {
        SCOPED_TRACE(runs.size());
        ScriptWorld world(runs, options);
        world.run(6);
        for (size_t r = 0; r < runs.size(); ++r) {
          EXPECT_TRUE(world.ranks[r]->last.is_ok()) << world.ranks[r]->last.message();
          EXPECT_EQ(world.hashes(r), alone.hashes(0));
          EXPECT_EQ(world.ranks[r]->script.weights, alone.ranks[0]->script.weights);
          EXPECT_EQ(world.ranks[r]->script.mean, alone.ranks[0]->script.mean);
        }
      }
    }
  }
}

TEST(ScriptEngine, ARecordSaysWhatTheSlotsSaid) {
  ScriptWorld world(kWorlds[0]);
  world.run(1);
  const wire::StepRecord& record = world.ranks[0]->outcomes[0].record;
  EXPECT_FLOAT_EQ(static_cast<float>(record.loss()), 3.0f) << "mean of 1 to 5, all of two samples";
  EXPECT_EQ(record.lr(), 0.125);
  EXPECT_TRUE(record.no_accuracy());
  ASSERT_EQ(record.metrics_size(), 1);
  EXPECT_FLOAT_EQ(static_cast<float>(record.metrics(0).value()), 2.0f);
  const StepPlan plan = plan_step(kShape, 0);
  ASSERT_EQ(record.slots_size(), 5);
  const EpochOrder order(order_spec(), 0);
  for (uint32_t slot = 0; slot < kSlots; ++slot)
    EXPECT_EQ(record.slots(static_cast<int>(slot)).digest(),
              planned_digest(order, plan, slot, kSlots));
  EXPECT_THAT(world.ranks[0]->script.mean, ::testing::Each(::testing::FloatEq(2.1f)));
  EXPECT_THAT(world.ranks[0]->script.used, ::testing::ElementsAre(5.0f, 3.0f))
      << "odd slots have no gradient of the second";
}

TEST(ScriptEngine, WhatASlotCountsWeighsIt) {
  ScriptWorld world(kWorlds[0], {.has_counts = true});
  world.run(1);
  // Slot s has loss s + 1 and counts s + 1.
  EXPECT_NEAR(world.ranks[0]->outcomes[0].record.loss(), 55.0 / 15.0, 1e-6);
}

TEST(ScriptEngine, AnApplyHasTheNumbersOfTheRecordAndSaysWhoseProcessIsTheWriter) {
  ScriptWorld world(kWorlds[1], {.check_every = 1, .has_counts = true});
  world.run(2);
  for (const size_t r : {0, 1}) {
    const FakeScript& script = world.ranks[r]->script;
    const auto& record = world.ranks[r]->outcomes.at(1).record;
    const ls_order& order = script.applies.at(1);
    EXPECT_EQ(order.is_writer, r);
    EXPECT_EQ(order.loss, record.loss());
    EXPECT_EQ(script.metrics[1], record.metrics(0).value());
    EXPECT_TRUE(order.evaluated.step == 9 && order.evaluated.loss == 0.5);
    const ls_order& check = script.asked_for_state;
    EXPECT_TRUE(check.step == 2 && check.generation == 1 && check.is_writer == order.is_writer);
  }
}

TEST(ScriptEngine, AFailureOfTheScriptIsTheStepsAndChangesNothing) {
  ScriptWorld world(kWorlds[1]);
  world.ranks[1]->script.fails_in = 3;
  world.run(2);
  EXPECT_THAT(world.ranks[1]->last, FailsWith(Code::kBadData, Says("planted")));
  EXPECT_EQ(world.ranks[0]->last.code(), Code::kAborted);
  for (const auto& rank : world.ranks) {
    EXPECT_EQ(rank->engine->applied_steps(), 0U);
    EXPECT_THAT(rank->script.weights, ::testing::Each(1.0f));
  }
}

TEST(ScriptEngine, WhoComputesASlotTwiceDifferentlyEndsTheRunItself) {
  ScriptWorld steady(kWorlds[1], {.check_every = 1});
  steady.run(3);
  for (const auto& rank : steady.ranks) {
    ASSERT_TRUE(rank->last.is_ok()) << rank->last.message();
    EXPECT_EQ(rank->outcomes[2].check->weights_hash(),
              steady.ranks[0]->outcomes[2].check->weights_hash());
    EXPECT_TRUE(rank->outcomes[0].check->has_gradient());
  }
  ScriptWorld world(kWorlds[1], {.check_every = 1});
  world.ranks[0]->script.is_of_two_minds = true;
  world.run(1);
  EXPECT_THAT(world.ranks[0]->last,
              FailsWith(Code::kConfig, Says("slot 0 of step 0"), Advises("default generators")));
}

TEST(ScriptEngine, StateGoesOutAndComesIn) {
  ScriptWorld world(kWorlds[0]);
  Rank& rank = *world.ranks[0];
  std::thread script([&] { rank.script.run(); });
  EXPECT_TRUE(rank.engine->is_afresh() && !rank.engine->progress().is_paused);
  std::vector<float> other(40, 7.0f);
  StateTensor tensor{.section = StateSection::kParameter,
                     .name = "w",
                     .dtype = DType::kF32,
                     .shape = {40},
                     .data = reinterpret_cast<std::byte*>(other.data()),
                     .bytes = 160};
  rank.script.fails_to_install = true;
  EXPECT_THAT(rank.engine->install_state({&tensor, 1}, 12), FailsWith(Code::kBadData));
  EXPECT_FALSE(rank.engine->is_afresh()) << "the script may have written some of it";
  EXPECT_TRUE(rank.engine->install_state({&tensor, 1}, 12).is_ok());
  EXPECT_TRUE(rank.engine->applied_steps() == 12 && rank.engine->progress().step == 12);
  rank.desk.set_paused(true);
  EXPECT_TRUE(rank.engine->progress().is_paused);
  const auto state = rank.engine->state();
  ASSERT_TRUE(state->size() == 1 && (*state)[0].name == "w");
  EXPECT_EQ(reinterpret_cast<float*>((*state)[0].data)[39], 7.0f);
  EXPECT_THAT(rank.engine->start_afresh(), FailsWith(Code::kInternal, Says("trained already")));
  rank.desk.end({});
  script.join();
}

TEST(ScriptEngine, OutsideOfASlotNothingIsTaken) {
  ScriptWorld world(kWorlds[0]);
  ScriptEngine& engine = *world.ranks[0]->engine;
  const float one = 1;
  EXPECT_THAT(engine.has_samples({}), FailsWith(Code::kUsage, Says("no slot")));
  EXPECT_THAT(engine.backward_begins(), FailsWith(Code::kUsage, Says("no slot")));
  EXPECT_THAT(engine.take(0, &one, DType::kF32, 1), FailsWith(Code::kUsage, Says("no slot")));
  EXPECT_THAT(engine.take_statistic(0, {&one, 1}), FailsWith(Code::kUsage, Says("no slot")));
  EXPECT_TRUE(engine.upcoming(4).empty());
}

TEST(ScriptEngine, EverySlotHasSeedsOfItsOwn) {
  EXPECT_NE(slot_seed(1, 2, 3), slot_seed(1, 3, 2));
  EXPECT_NE(slot_seed(1, 2, 3), slot_seed(2, 2, 3));
  const auto tasks = ScriptWorld(kWorlds[0]).run(3).ranks[0]->script.tasks;
  EXPECT_EQ(tasks.size(), 13U) << "the short step leaves slots empty";
  for (const ls_task& task : tasks) EXPECT_EQ(task.seed, slot_seed(3, task.step, task.slot));
}

}  // namespace
}  // namespace lockstep
