// What a slot may say, and what becomes of it in the region of its gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "comm/collectives/bucket_plan.h"
#include "comm/collectives/loopback/loopback.h"
#include "tests/support/fails_with.h"
#include "tests/unit/script/serve_desk.h"
#include "worker/script/script_engine.h"

namespace lockstep {
namespace {

using ::testing::Each;

// A run of one worker with two slots of 4 samples, in `turns` of a batch, whose script is a
// function.
class ScriptSlot : public ::testing::Test {
 protected:
  static constexpr uint64_t kElements = 3;

  explicit ScriptSlot(uint32_t turns = 1)
      : shape_{.samples = 80, .global_batch = 8, .slots = 2, .turns = turns},
        layout_(ScriptLayout::create(
                    {.parameters = {{"a", {kElements}, false}, {"late", {kElements}, true}},
                     .statistics = {{"m", {1}, false}},
                     .metrics = {"metric"},
                     .has_counts = true},
                    2)
                    .value()),
        engine_(
            ScriptEngine::create(
                {job_, shape_, order(), layout_, desk_, {"a=b"}, std::vector<double>(turns, 0.125)},
                [&](const BufferLayout& flat, uint32_t regions) {
                  return Result(make_plain_buffer(flat, regions, layout_.room()));
                })
                .value()) {
    lrs_.resize(turns, 0.5);
  }

  static wire::JobSpec job() {
    wire::JobSpec job;
    job.mutable_train()->set_slots(2);
    job.mutable_comm()->set_numerics("exact");
    return job;
  }
  static OrderSpec order() {
    return {.seed = 3, .fingerprint = "f", .samples = 80, .blocks = {}, .classes = 0, .parts = {}};
  }

  Status samples(uint64_t count) { return engine_->has_samples(std::vector<uint64_t>(count, 0)); }
  Status take(uint32_t parameter, float value, uint64_t elements = kElements) {
    const std::vector<float> gradient(elements, value);
    return engine_->take(parameter, gradient.data(), DType::kF32, elements);
  }
  Status statistic() { return engine_->take_statistic(0, std::vector<float>(1, 1.0f)); }
  // All that a slot must say.
  void compute() {
    EXPECT_TRUE(samples(4).is_ok());
    EXPECT_TRUE(engine_->backward_begins().is_ok());
    EXPECT_TRUE(take(0, 1).is_ok());
    EXPECT_TRUE(statistic().is_ok());
  }

  // Steps until one fails.
  Status run(Step steps, const std::function<void(const ls_order&, ls_reply&)>& script) {
    std::thread python([&] { serve(script); });
    const auto collectives = make_loopback(1, {&engine_->gradient_buffer()});
    GenerationView view;
    view.generation = 1;
    view.collective = collectives[0].get();
    view.slot_runs = {{0, 2}};
    const FlatLayout& flat = layout_.flat();
    view.bucket_bounds = plan_buckets(flat.tensor_bounds(), flat.buffer.elements, 64).value();
    view.total_steps = steps;
    Status status = engine_->begin_generation(view, {});
    for (Step t = 0; t < steps && status.is_ok(); ++t) {
      Result<StepOutcome> outcome = engine_->step();
      status = outcome.status();
      if (status.is_ok()) outcomes_.push_back(std::move(*outcome));
    }
    if (status.is_ok() && crosses_) status = engine_->cross_edge(false).status();
    engine_->end_generation();
    desk_.end({});
    python.join();
    return status;
  }
  Status run(const std::function<void()>& script) {
    return run(1, [&](const ls_order& order, ls_reply&) {
      if (order.kind == LS_SLOT) script();
    });
  }

  const RunShape shape_;
  const wire::JobSpec job_ = job();
  Desk desk_;
  ScriptLayout layout_;
  std::unique_ptr<ScriptEngine> engine_;
  std::vector<StepOutcome> outcomes_;
  std::vector<double> lrs_;
  double metric_ = 0;
  bool crosses_ = false;

 private:
  void serve(const std::function<void(const ls_order&, ls_reply&)>& script) {
    serve_desk(desk_, [&](const ls_order& order, ls_reply& reply) {
      reply.count = 4;
      reply.metrics = &metric_;
      reply.lrs = lrs_.data();
      script(order, reply);
    });
  }
};

TEST_F(ScriptSlot, OtherSamplesThanTheSlotsAreRefused) {
  EXPECT_TRUE(run([&] {
                compute();
                EXPECT_THAT(samples(3), FailsWith(Code::kInternal, Says("of 4 samples got 3")));
              }).is_ok());
}

TEST_F(ScriptSlot, AGradientOfAnotherSizeOrASecondOneIsRefused) {
  EXPECT_TRUE(run([&] {
                compute();
                EXPECT_THAT(take(0, 1, 2), FailsWith(Code::kUsage, Says("has 2 elements")));
                EXPECT_THAT(take(0, 1), FailsWith(Code::kUsage, Says("came twice")));
              }).is_ok());
}

TEST_F(ScriptSlot, ASlotWithoutAStatisticOfTheTrialFails) {
  EXPECT_THAT(run([&] {
                EXPECT_TRUE(samples(4).is_ok());
                EXPECT_TRUE(engine_->backward_begins().is_ok());
                EXPECT_TRUE(take(0, 1).is_ok());
              }),
              FailsWith(Code::kInternal, Says("a statistic of the script's slot is missing")));
}

TEST_F(ScriptSlot, AGradientThatComesInPartsIsTheirSum) {
  std::vector<float> sums;
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply&) {
                if (order.kind == LS_APPLY) {
                  const float* begin = layout_.gradients().data() + layout_.parameter_begins()[1];
                  sums.assign(begin, begin + kElements);
                } else {
                  compute();
                  for (int part : {1, 2}) EXPECT_TRUE(take(1, static_cast<float>(part)).is_ok());
                }
              }).is_ok());
  ASSERT_EQ(sums.size(), kElements);
  EXPECT_THAT(sums, Each(6.0f)) << "3 of each of two slots";
}

// The loss is a mean over what is counted, a metric one over samples.
TEST_F(ScriptSlot, AMetricIsWeighedByItsSamplesWhateverTheLossCounts) {
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply& reply) {
                if (order.kind != LS_SLOT) return;
                compute();
                metric_ = order.task.slot == 0 ? 1.0 : 2.0;
                reply.count = order.task.slot == 0 ? 1 : 3;
              }).is_ok());
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_FLOAT_EQ(static_cast<float>(outcomes_[0].record.metrics(0).value()), 1.5f);
}

TEST_F(ScriptSlot, TheCodeAfterAnEpochDrawsOtherNumbersThanAnApply) {
  crosses_ = true;
  std::vector<uint64_t> seeds;
  EXPECT_TRUE(run(2, [&](const ls_order& order, ls_reply&) {
                if (order.kind == LS_SLOT)
                  compute();
                else
                  seeds.push_back(order.task.seed);
              }).is_ok());
  ASSERT_EQ(seeds.size(), 3u);
  EXPECT_EQ(seeds[2], slot_seed(0, 2, 3));
  EXPECT_EQ(seeds[1], slot_seed(0, 1, 2));
}

class ScriptTurns : public ScriptSlot {
 protected:
  ScriptTurns() : ScriptSlot(2) {}
};

// In the first turn the loop's body asks for the end, or after_step= does.
TEST_F(ScriptTurns, AnEndWaitsForTheLastTurnOfItsBatch) {
  EXPECT_TRUE(run(2, [&](const ls_order& order, ls_reply& reply) {
                if (order.kind == LS_SLOT) compute();
                reply.ends_run = order.task.turn == 0 || order.kind == LS_SLOT;
              }).is_ok());
  ASSERT_EQ(outcomes_.size(), 2u);
  EXPECT_FALSE(outcomes_[0].ends_here);
  EXPECT_TRUE(outcomes_[1].ends_here);
}

}  // namespace
}  // namespace lockstep
