// A script whose gradients leave a device without Python's copies, over a device in plain memory
// whose work and whose sums are as late as they may be (script_world.h): an order of streams that
// is forgotten shows as other bits.
#include "worker/script/script_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/unit/script/script_slot_world.h"
#include "tests/unit/script/script_world.h"

namespace lockstep {
namespace {

constexpr Step kSteps = 6;

void expect_same(const ScriptWorld& world, const ScriptWorld& alone) {
  for (size_t r = 0; r < world.ranks.size(); ++r) {
    ASSERT_TRUE(world.ranks[r]->last.is_ok()) << world.ranks[r]->last.message();
    EXPECT_EQ(world.hashes(r), alone.hashes(0));
    EXPECT_EQ(world.ranks[r]->script.weights, alone.ranks[0]->script.weights);
    EXPECT_EQ(world.ranks[r]->script.mean, alone.ranks[0]->script.mean);
    EXPECT_EQ(world.ranks[r]->script.used, alone.ranks[0]->script.used);
  }
}

TEST(ScriptDevice, HasTheBitsOfTheHostWhicheverWaySumsGo) {
  for (const bool has_counts : {false, true}) {
    for (const bool has_late : {false, true}) {
      WorldOptions options{.has_counts = has_counts, .has_late = has_late, .has_plain_loss = true};
      ScriptWorld host(kWorlds[0], options);
      host.run(kSteps);
      options.has_devices = true;
      for (const auto& runs : kWorlds) {
        for (const bool connects : {false, true}) {
          if (connects && runs.size() == 1) continue;
          SCOPED_TRACE(
              ::testing::PrintToString(std::tuple(runs.size(), connects, has_counts, has_late)));
          ScriptWorld world(runs, options);
          world.run(kSteps, connects);
          expect_same(world, host);
        }
      }
    }
  }
}

TEST(ScriptDevice, GenerationsMayChangeTheWayOfSums) {
  ScriptWorld host(kWorlds[0], {.has_plain_loss = true});
  host.run(kSteps);
  ScriptWorld world(kWorlds[2], {.has_devices = true});
  world.run({{2, true}, {2, false}, {2, true}});
  expect_same(world, host);
}

TEST(ScriptDevice, ASlotThatIsCheckedIsHashedOnTheDevice) {
  const WorldOptions options{.check_every = 1, .has_devices = true};
  ScriptWorld host(kWorlds[1], {.check_every = 1, .has_plain_loss = true});
  host.run(kSteps);
  for (const bool connects : {false, true}) {
    ScriptWorld world(kWorlds[1], options);
    world.run(kSteps, connects);
    expect_same(world, host);
    for (size_t r = 0; r < 2; ++r) {
      for (size_t t = 0; t < kSteps; ++t) {
        const auto& mine = world.ranks[r]->outcomes[t].check;
        const auto& hosts = host.ranks[r]->outcomes[t].check;
        EXPECT_EQ(mine->gradient_hash(), hosts->gradient_hash());
        EXPECT_EQ(mine->weights_hash(), hosts->weights_hash());
      }
    }
    ScriptWorld differs(kWorlds[1], options);
    differs.ranks[0]->script.is_of_two_minds = true;
    differs.run(1, connects);
    EXPECT_THAT(differs.ranks[0]->last, FailsWith(Code::kConfig, Says("slot 0 of step 0")));
  }
}

TEST(ScriptDevice, AStepIsLeftOutOfAHashIfItsSumsAreNoNumbers) {
  ScriptWorld world(kWorlds[1], {.check_every = 1, .has_devices = true});
  for (auto& rank : world.ranks) rank->script.weights[3] = INFINITY;
  world.run(1, /*connects=*/true);
  for (auto& rank : world.ranks) {
    ASSERT_TRUE(rank->last.is_ok()) << rank->last.message();
    EXPECT_FALSE(rank->outcomes[0].check->has_gradient());
  }
}

TEST(ScriptDevice, WithoutTheOrderOfWritesOrReadsTheBitsAreOthers) {
  ScriptWorld host(kWorlds[0], {.has_plain_loss = true});
  host.run(kSteps);
  for (bool FakeScript::*const forgets :
       {&FakeScript::forgets_writes_on, &FakeScript::forgets_reads_on}) {
    SCOPED_TRACE(forgets == &FakeScript::forgets_reads_on);
    ScriptWorld world(kWorlds[0], {.has_devices = true});
    world.ranks[0]->script.*forgets = true;
    world.run(kSteps);
    EXPECT_NE(world.ranks[0]->script.weights, host.ranks[0]->script.weights);
  }
  ScriptWorld silent(kWorlds[0], {.has_devices = true});
  silent.ranks[0]->script.forgets_has_read = true;
  silent.run(1);
  EXPECT_THAT(silent.ranks[0]->last, FailsWith(Code::kInternal, Says("on which stream")));
}

TEST(ScriptDevice, AFailureInASlotChangesNothing) {
  ScriptWorld world(kWorlds[1], {.has_devices = true});
  FakeScript& failing = world.ranks[1]->script;
  failing.fails_in = 3;
  const auto mend = [&] {
    EXPECT_THAT(world.ranks[1]->last, FailsWith(Code::kBadData, Says("planted")));
    EXPECT_EQ(world.ranks[0]->last.code(), Code::kAborted);
    for (const auto& rank : world.ranks) EXPECT_EQ(rank->engine->applied_steps(), 0U);
    failing.fails_in.reset();
  };
  world.run({{2, true}, {kSteps, true, mend}});
  ScriptWorld host(kWorlds[0], {.has_plain_loss = true});
  host.run(kSteps);
  expect_same(world, host);
}

TEST(ScriptDevice, ASlotThatIsComputedAgainWaitsForNoSumOfItsStep) {
  const ScriptLayout layout =
      ScriptLayout::create({.parameters = {{"a", {4}, false}}, .statistics = {}, .metrics = {}}, 2)
          .value();
  const FlatLayout& flat = layout.flat();
  testing::PlainModule module;
  module.has_late_compute = true;
  auto device = ScriptDevice::create(module, flat, /*sums_in_windows=*/false, /*has_checks=*/true);
  ASSERT_TRUE(device.is_ok()) << device.status().message();
  const auto buffer = make_plain_buffer(flat.buffer, 2);
  const auto collectives = make_loopback(1, {buffer.get()});
  GenerationView view;
  view.collective = collectives[0].get();
  DeviceSums& sums = *(*device)->path(view, 2)->sums;
  void* const stream = module.make_stream();
  const auto write = [&](float* place, float value) {
    EXPECT_TRUE((*device)->writes_on(stream).is_ok());
    module.enqueue(stream, [place, value] { std::fill_n(place, 4, value); });
  };
  const ElementRange all{0, flat.buffer.statistics};
  write((*device)->begin_slot(sums.partial(1), /*is_private=*/false).value(), 1);
  EXPECT_TRUE(sums.bring(1, all).is_ok());
  EXPECT_TRUE(sums.merge({.dst = 0, .src = 1}, all).is_ok());
  float* const again = (*device)->begin_slot(nullptr, /*is_private=*/true).value();
  write(again, 2);
  EXPECT_TRUE((*device)->hash(again).is_ok());
  EXPECT_EQ(again[0], 2);
  EXPECT_EQ(sums.partial(0)[0], 0) << "a peer may never come to this sum";
  EXPECT_TRUE((*device)->begin_slot(sums.partial(1), /*is_private=*/false).is_ok());
  EXPECT_TRUE(module.wait(kGradientsReached).is_ok());
  EXPECT_EQ(sums.partial(0)[0], 1);
}

TEST(ScriptDevice, AnEngineTakesGradientsOneWay) {
  ScriptWorld with(kWorlds[0], {.has_devices = true});
  const float one = 1;
  EXPECT_THAT(with.ranks[0]->engine->take(0, &one, DType::kF32, 1),
              FailsWith(Code::kInternal, Says("by the host")));
  EXPECT_THAT(with.ranks[0]->engine->take_statistic(0, {&one, 1}),
              FailsWith(Code::kInternal, Says("by the host")));
  for (const Status& status :
       {with.ranks[0]->engine->reads_on(nullptr), with.ranks[0]->engine->has_read(nullptr)})
    EXPECT_THAT(status, FailsWith(Code::kInternal, Says("no sums")));
  EXPECT_THAT(with.ranks[0]->engine->fingerprint(), ::testing::ElementsAre("a=b"));
  with.ranks[0]->module->nccl_version = "2.28.9";
  EXPECT_THAT(with.ranks[0]->engine->fingerprint(), ::testing::ElementsAre("a=b", "nccl=2.28.9"));
  ScriptWorld without(kWorlds[0]);
  ScriptEngine& engine = *without.ranks[0]->engine;
  for (const Status& status : {engine.wrote(0, 20), engine.wrote_statistic(0, 4),
                               engine.reads_on(nullptr), engine.has_read(nullptr)})
    EXPECT_THAT(status, FailsWith(Code::kInternal, Says("host's memory")));
}

}  // namespace
}  // namespace lockstep
