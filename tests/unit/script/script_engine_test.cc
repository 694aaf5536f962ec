// Steps whose slots a thread computes that stands for Python: a state of two parameters, a
// statistic, and a step counter.
#include "worker/script/script_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "comm/base/prng.h"
#include "comm/collectives/bucket_plan.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/run/plan/digest.h"
#include "tests/support/fails_with.h"
#include "tests/unit/script/serve_desk.h"

namespace lockstep {
namespace {

constexpr uint32_t kSlots = 5;
constexpr RunShape kShape{.samples = 23, .global_batch = 10, .slots = kSlots};

wire::JobSpec job_of(uint64_t check_every) {
  wire::JobSpec job;
  job.set_seed(3);
  job.mutable_train()->set_check_every(check_every);
  job.mutable_train()->set_slots(kSlots);
  job.mutable_comm()->set_numerics("exact");
  return job;
}

OrderSpec order_spec() {
  return {.seed = 3,
          .fingerprint = "f",
          .samples = kShape.samples,
          .blocks = {},
          .classes = 0,
          .parts = {}};
}

// Stands for Python in one rank.
class FakeScript {
 public:
  FakeScript(Desk& desk, ScriptEngine& engine, const ScriptLayout& layout)
      : desk_(desk), engine_(engine), layout_(layout) {}

  void run() {
    serve_desk(desk_, [this](const ls_order& order, ls_reply& reply) { answer(order, reply); });
  }

  std::vector<float> weights = std::vector<float>(40, 1.0f);  // of both parameters
  std::vector<float> mean = std::vector<float>(4, 0.0f);
  uint64_t applied = 0;
  std::vector<ls_task> tasks;
  std::vector<float> used;  // of the last step
  std::vector<ls_order> applies;
  std::vector<double> metrics;  // of all steps
  ls_order asked_for_state{};
  std::optional<uint32_t> fails_in;        // a slot
  bool fails_to_install = false;           // once
  bool is_of_two_minds = false;            // other gradients when a slot is asked for again
  std::optional<uint32_t> leaves_out = 1;  // a parameter: no gradient in odd slots
  bool has_late = false;

 private:
  static void fail(ls_reply& reply) {
    reply.code = 65;
    reply.text = "a planted failure";
  }
  void answer(const ls_order& order, ls_reply& reply) {
    switch (order.kind) {
      case LS_SLOT:
        return compute(order, reply);
      case LS_APPLY:
        applies.push_back(order);
        metrics.push_back(order.metrics[0]);
        EXPECT_EQ(order.generation, 1U);
        return apply(reply);
      case LS_STATE:
        asked_for_state = order;
        return describe(reply);
      default:
        if (std::exchange(fails_to_install, false)) return fail(reply);
        weights.assign(static_cast<float*>(order.tensors[0].data),
                       static_cast<float*>(order.tensors[0].data) + weights.size());
        applied = order.step;
        reply.lrs = &(lr_ = 0.25);
    }
  }

  void compute(const ls_order& order, ls_reply& reply) {
    const ls_task& task = order.task;
    tasks.push_back(task);
    if (fails_in && task.slot == *fails_in) return fail(reply);
    const EpochOrder epoch(order_spec(), task.epoch);
    std::vector<uint64_t> indices;
    for (uint64_t at = task.begin; at < task.end; ++at) indices.push_back(epoch.at(at));
    EXPECT_TRUE(engine_.has_samples(indices).is_ok());
    if (!engine_.backward_begins().is_ok()) return;
    const uint64_t key =
        stream_key({task.step, task.slot, is_of_two_minds && order.is_again ? 1u : 0u});
    for (uint32_t p = 2; p-- > 0;) {
      if (leaves_out == p && task.slot % 2 == 1) continue;
      const FlatTensor& place = layout_.flat().parameters[p];
      std::vector<float> gradient(place.elements);
      for (uint64_t i = 0; i < gradient.size(); ++i)
        gradient[i] = weights[p * 20 + i] * static_cast<float>(stream_value(key, i) % 1'000'003);
      for (int times = has_late && p == 1 ? 2 : 1; times > 0; --times)
        EXPECT_TRUE(engine_.take(p, gradient.data(), DType::kF32, gradient.size()).is_ok());
    }
    const std::vector<float> statistic(4, static_cast<float>(task.slot) + 0.1f);
    EXPECT_TRUE(engine_.take_statistic(0, statistic).is_ok());
    metric_ = static_cast<double>(task.slot);
    reply.loss = static_cast<double>(weights[0]) * (task.slot + 1);
    reply.count = layout_.facts().has_counts ? task.slot + 1 : task.end - task.begin;
    reply.metrics = &metric_;
  }

  void apply(ls_reply& reply) {
    for (uint32_t p = 0; p < 2; ++p)
      for (uint64_t i = 0; i < 20; ++i)
        weights[p * 20 + i] -= 1e-8f * layout_.gradients()[layout_.parameter_begins()[p] + i];
    std::copy_n(layout_.statistics().begin(), 4, mean.begin());
    used = layout_.used();
    ++applied;
    reply.lrs = &(lr_ = 0.5);
  }

  void describe(ls_reply& reply) {
    tensor_ = {.name = "w",
               .shape = shape_,
               .data = weights.data(),
               .bytes = weights.size() * sizeof(float),
               .dims = 1,
               .section = 0,
               .dtype = 0,
               .is_late = 0};
    reply.tensors = &tensor_;
    reply.tensor_count = 1;
  }

  Desk& desk_;
  ScriptEngine& engine_;
  const ScriptLayout& layout_;
  double metric_ = 0, lr_ = 0;
  ls_tensor tensor_{};
  const int64_t shape_[1] = {40};
};

struct Rank {
  // `is_alone`: it sums where the script's optimizer finds the gradients.
  Rank(const wire::JobSpec& job, bool is_alone, bool has_counts, bool has_late)
      : layout(ScriptLayout::create({.parameters = {{"a", {20}, false}, {"b", {4, 5}, has_late}},
                                     .statistics = {{"m", {4}, false}},
                                     .metrics = {"slot"},
                                     .has_counts = has_counts},
                                    kSlots)
                   .value()),
        engine(ScriptEngine::create({job, kShape, order_spec(), layout, desk, {"a=b"}, {0.125}},
                                    [&](const BufferLayout& flat, uint32_t regions) {
                                      return Result(make_plain_buffer(
                                          flat, regions, is_alone ? layout.room() : nullptr));
                                    })
                   .value()),
        script(desk, *engine, layout) {
    script.has_late = has_late;
  }

  Desk desk;
  ScriptLayout layout;
  std::unique_ptr<ScriptEngine> engine;
  FakeScript script;
  std::vector<StepOutcome> outcomes;
  Status last;
  std::vector<StateTensor> state;
};

struct WorldOptions {
  uint64_t check_every = 0;
  bool has_counts = false;
  bool has_late = false;
};

class ScriptWorld {
 public:
  explicit ScriptWorld(const std::vector<SlotRun>& runs, WorldOptions options = {})
      : job_(job_of(options.check_every)), runs_(runs) {
    for (size_t r = 0; r < runs.size(); ++r)
      ranks.push_back(
          std::make_unique<Rank>(job_, runs.size() == 1, options.has_counts, options.has_late));
  }

  // Every rank with its two threads, up to its first error.
  ScriptWorld& run(Step steps) {
    std::vector<GradientBuffer*> raw;
    for (const auto& rank : ranks) raw.push_back(&rank->engine->gradient_buffer());
    const auto collectives = make_loopback(1, raw);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ranks.size(); ++r) {
      Rank& rank = *ranks[r];
      threads.emplace_back([&rank] { rank.script.run(); });
      threads.emplace_back([this, &rank, collective = collectives[r].get(), steps] {
        rank.last = train(rank, *collective, steps);
        if (!rank.last.is_ok()) collective->abort();
        rank.engine->end_generation();
        rank.desk.end({});
      });
    }
    for (std::thread& thread : threads) thread.join();
    return *this;
  }

  std::vector<uint64_t> hashes(size_t rank) const {
    std::vector<uint64_t> all;
    for (const StepOutcome& outcome : ranks[rank]->outcomes)
      all.push_back(outcome.record.common_hash());
    return all;
  }

  std::vector<std::unique_ptr<Rank>> ranks;

 private:
  Status train(Rank& rank, Collective& collective, Step steps) {
    GenerationView view;
    view.generation = 1;
    view.collective = &collective;
    view.slot_runs = runs_;
    const FlatLayout& flat = rank.layout.flat();
    view.bucket_bounds = plan_buckets(flat.tensor_bounds(), flat.buffer.elements, 64).value();
    view.total_steps = steps;
    view.is_writer = collective.rank() == 1;
    view.evaluated = {.step = 9, .loss = 0.5, .correct = 3, .samples = 4};
    LOCKSTEP_RETURN_IF_ERROR(rank.engine->begin_generation(view, {}));
    for (Step t = 0; t < steps; ++t) {
      LOCKSTEP_ASSIGN_OR_RETURN(StepOutcome outcome, rank.engine->step());
      rank.outcomes.push_back(std::move(outcome));
    }
    return Status::ok();
  }

  const wire::JobSpec job_;
  const std::vector<SlotRun> runs_;
};

const std::vector<std::vector<SlotRun>> kWorlds = {
    {{0, 5}}, {{0, 2}, {2, 5}}, {{0, 1}, {1, 4}, {4, 5}}, {{0, 5}, {5, 5}}};

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
  EXPECT_THAT(world.ranks[0]->script.mean, testing::Each(testing::FloatEq(2.1f)));
  EXPECT_THAT(world.ranks[0]->script.used, testing::ElementsAre(5.0f, 3.0f))
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
    EXPECT_THAT(rank->script.weights, testing::Each(1.0f));
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
