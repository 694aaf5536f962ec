// Everything else that the driver of an engine relies on.
#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/sort.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <set>

#include "comm/base/labels.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/plan/digest.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/step_plan.h"
#include "tests/support/fails_with.h"
#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "worker/torch/engine/top_classes.h"

namespace lockstep {
namespace {

using testing::even_runs;
using ::testing::HasSubstr;
using testing::LoopbackWorld;
using testing::make_engine;
using testing::make_patterns;
using testing::small_job;

TEST(Engine, LearnsThePatternsOfASmallSet) {
  const auto dataset = make_patterns(200);
  const auto eval = make_patterns(90);
  for (const char* model : {"mlp", "cnn"}) {
    LoopbackWorld world(small_job(model), *dataset, even_runs(4, 2), 0, eval.get());
    world.begin_generation(60);
    const auto result = world.train_to(60);
    EXPECT_LT(result.losses.back(), 0.5 * result.losses.front()) << model;
    const auto reports = world.evaluate_all();
    ASSERT_TRUE(reports[0].is_ok()) << reports[0].status().message();
    EXPECT_GT(reports[0]->correct(), 80u) << model;
    EXPECT_EQ(reports[0]->samples(), 90u);
    EXPECT_EQ(reports[0]->step(), 60u);
    EXPECT_EQ(reports[0]->epoch(), 5u);  // 10 steps an epoch, the sixth just ended
  }
}

TEST(Engine, EvaluatesToTheSameBitsOnEveryRankAndForAnyNumberOfRanks) {
  const auto dataset = make_patterns(60);
  const auto eval = make_patterns(101);  // 7 batches of 16, the last one of 5
  std::set<double> losses;
  std::set<uint64_t> correct;
  for (const uint32_t ranks : {1u, 2u, 3u, 4u}) {
    wire::JobSpec job = small_job("cnn");
    job.mutable_model()->set_batch_norm(true);
    job.mutable_model()->set_dropout(0.5);
    LoopbackWorld world(job, *dataset, even_runs(4, ranks), 0, eval.get());
    world.begin_generation(4);
    const std::string trained = world.train_to(4).state;
    for (const auto& report : world.evaluate_all()) {
      ASSERT_TRUE(report.is_ok()) << report.status().message();
      losses.insert(report->loss());
      correct.insert(report->correct());
    }
    EXPECT_TRUE(testing::state_bytes(world.engine(0), true) == trained);
  }
  EXPECT_EQ(losses.size(), 1u);
  EXPECT_EQ(correct.size(), 1u);
}

TEST(Engine, CountsTheTopFiveFromTenClassesOn) {
  for (const uint32_t classes : {9u, 12u}) {
    const auto dataset = make_patterns(60, 8, classes);
    const auto eval = make_patterns(101, 8, classes);
    std::set<uint64_t> top5;
    for (const uint32_t ranks : {1u, 3u}) {
      LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, ranks), 0, eval.get());
      world.begin_generation(2);
      world.train_to(2);
      for (const auto& report : world.evaluate_all()) {
        ASSERT_TRUE(report.is_ok()) << report.status().message();
        EXPECT_EQ(report->has_top5(), classes == 12);
        EXPECT_GE(report->top5(), classes == 12 ? report->correct() : 0);
        EXPECT_LE(report->top5(), report->samples());
        EXPECT_GT(report->lr(), 0);
        top5.insert(report->top5());
      }
    }
    EXPECT_EQ(top5.size(), 1u);
  }
}

TEST(Engine, TheTopFiveAreThoseOfASort) {
  const int64_t n = 200;
  at::manual_seed(3);
  at::Tensor logits = at::randint(0, 9, {n, 12}).to(at::kFloat);  // with many ties
  logits[0][3] = std::numeric_limits<float>::quiet_NaN();
  std::vector<int64_t> labels(n);
  for (int64_t i = 0; i < n; ++i) labels[static_cast<size_t>(i)] = i % 12;
  labels[7] = kIgnoredLabel;
  labels[0] = 3;
  const at::Tensor order = std::get<1>(logits.sort(/*stable=*/true, 1, /*descending=*/true));
  uint64_t expected = 0;
  for (int64_t i = 1; i < n; ++i)
    for (int64_t k = 0; k < kTopClasses; ++k)
      expected += order[i][k].item<int64_t>() == labels[static_cast<size_t>(i)] ? 1 : 0;
  EXPECT_EQ(count_in_top(logits, labels.data()), expected);
  EXPECT_GT(expected, 50u);
}

TEST(Engine, StopsOnlyWhenEveryRankAsksForIt) {
  const auto dataset = make_patterns(80);
  LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, 3));
  world.begin_generation(4);
  world.engine(0).request_stop();
  world.engine(2).request_stop();
  for (const auto& outcome : world.step_all()) EXPECT_FALSE(outcome->all_want_stop);
  world.engine(1).request_stop();
  for (const auto& outcome : world.step_all()) EXPECT_TRUE(outcome->all_want_stop);
}

TEST(Engine, RecordsSayWhatWasDone) {
  const auto dataset = make_patterns(63);  // the last step has 3 samples for 4 slots
  LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, 2));
  world.begin_generation(4);
  world.train_to(3);
  const auto outcomes = world.step_all();
  ASSERT_TRUE(outcomes[0].is_ok() && outcomes[1].is_ok());
  EXPECT_TRUE(outcomes[0]->epoch_ended);
  EXPECT_EQ(outcomes[0]->record.step(), 3u);
  EXPECT_EQ(outcomes[0]->record.samples(), 3u);
  for (const auto& outcome : outcomes) {
    ASSERT_EQ(outcome->record.slots_size(), 3);  // slot 0 is empty
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(outcome->record.slots(i).slot(), static_cast<uint32_t>(i) + 1);
      EXPECT_EQ(outcome->record.slots(i).samples(), 1u);
    }
  }
  EXPECT_LE(outcomes[0]->record.correct(), 3u);
}

// Every rank reports for every slot what the audit expects, whichever rank owned the slot.
TEST(Engine, EveryRankReportsTheDigestsOfAllSlotsAsThePlanPromisesThem) {
  const auto dataset = make_patterns(63);
  const wire::JobSpec job = small_job("mlp");
  const RunShape shape{63, job.train().global_batch(), job.train().slots()};
  for (const uint32_t ranks : {1u, 3u}) {
    LoopbackWorld world(job, *dataset, even_runs(4, ranks), 4096);
    world.begin_generation(6);
    for (Step step = 0; step < 6; ++step) {
      const StepPlan plan = plan_step(shape, step);
      const EpochOrder order({job.seed(), dataset->fingerprint(), 63}, plan.epoch);
      for (const auto& outcome : world.step_all()) {
        ASSERT_TRUE(outcome.is_ok()) << outcome.status().message();
        for (const wire::SlotDigest& slot : outcome->record.slots()) {
          EXPECT_EQ(slot.digest(), planned_digest(order, plan, slot.slot(), 4))
              << "step " << step << ", slot " << slot.slot() << ", " << ranks << " ranks";
          EXPECT_EQ(slot.samples(), slot_positions(plan, slot.slot(), 4).size());
        }
        EXPECT_EQ(outcome->record.slots_size(), plan.samples == 3 ? 3 : 4);
      }
    }
  }
}

TEST(Engine, SwitchesOnlyWhenEveryRankKnowsOfTheChange) {
  const auto dataset = make_patterns(80);
  LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, 3));
  std::atomic<int> knowing{0};
  std::atomic<int> asked{0};
  world.wants_switch = [&](uint32_t rank) {
    ++asked;
    return static_cast<int>(rank) < knowing;
  };
  world.begin_generation(4);
  for (const int count : {0, 2}) {
    knowing = count;
    for (const auto& outcome : world.step_all()) EXPECT_FALSE(outcome->all_want_switch);
  }
  knowing = 3;
  for (const auto& outcome : world.step_all()) {
    EXPECT_TRUE(outcome->all_want_switch);
    EXPECT_FALSE(outcome->all_want_stop);
  }
  EXPECT_EQ(asked, 9);
}

TEST(Engine, StartsAfreshToTheBitsOfANewOne) {
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_batch_norm(true);
  LoopbackWorld world(job, *dataset, even_runs(4, 2));
  const std::string initial = testing::state_bytes(world.engine(0), true);
  world.begin_generation(4);
  const std::string trained = world.train_to(4).state;
  ASSERT_FALSE(trained == initial);
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_TRUE(world.engine(r).start_afresh().is_ok());
    EXPECT_TRUE(testing::state_bytes(world.engine(r), true) == initial);
    EXPECT_EQ(world.engine(r).applied_steps(), 0u);
  }
  world.begin_generation(4);
  EXPECT_TRUE(world.train_to(4).state == trained);
}

TEST(Engine, RefusesBatchNormOverASingleValueAndNamesTheNumbers) {
  const auto dataset = make_patterns(63);
  wire::JobSpec job = small_job("mlp");
  job.mutable_model()->set_batch_norm(true);
  const Status status = make_engine(job, *dataset).status();
  EXPECT_THAT(status, FailsWith(Code::kConfig, Says("3 samples")));
  EXPECT_THAT(status.message(), HasSubstr("4 slots"));
  EXPECT_THAT(status.message(), HasSubstr("train.global_batch"));
  // A convolution has many values per channel in a single sample.
  job.mutable_model()->set_name("cnn");
  EXPECT_TRUE(make_engine(job, *dataset).is_ok());
}

TEST(Engine, RefusesWhatItDoesNotKnowNamingTheNearest) {
  const auto dataset = make_patterns(60);
  wire::JobSpec job = small_job("cnm");
  Status status = make_engine(job, *dataset).status();
  EXPECT_THAT(status, FailsWith(Code::kUsage, Suggests("cnn")));

  job = small_job("mlp");
  job.mutable_optimizer()->set_name("nadan");
  status = make_engine(job, *dataset).status();
  EXPECT_THAT(status, FailsWith(Code::kUsage, Suggests("nadam")));

  job = small_job("mlp");
  job.mutable_schedule()->set_name("onecicle");
  status = make_engine(job, *dataset).status();
  EXPECT_THAT(status, FailsWith(Code::kUsage, Suggests("onecycle")));

  const auto tiny = make_patterns(60, 9);
  status = make_engine(small_job("cnn"), *tiny).status();
  EXPECT_THAT(status, FailsWith(Code::kConfig, HasSubstr("9x9")));
}

TEST(Engine, NamesItsStateAsPyTorchWould) {
  const auto dataset = make_patterns(60);
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_batch_norm(true);
  const auto engine = make_engine(job, *dataset);
  std::set<std::string> names;
  for (const StateTensor& t : testing::state_of(*engine.value())) {
    EXPECT_TRUE(names.insert(t.name).second) << t.name;
    uint64_t elements = 1;
    for (const int64_t size : t.shape) elements *= static_cast<uint64_t>(size);
    EXPECT_EQ(t.bytes, elements * (t.dtype == DType::kI64 ? 8 : 4)) << t.name;
  }
  for (const char* name : {"conv1.weight", "bn1.bias", "bn2.running_var", "bn2.num_batches_tracked",
                           "fc2.weight", "exp_avg.fc1.bias", "exp_avg_sq.conv2.weight"})
    EXPECT_TRUE(names.count(name)) << name;
}

TEST(Engine, ItsFingerprintIsSortedAndNamesWhatDecidesTheBits) {
  const auto dataset = make_patterns(60);
  const auto lines = make_engine(small_job("mlp"), *dataset).value()->fingerprint();
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end()));
  EXPECT_THAT(lines, ::testing::Contains("threads=1"));
  EXPECT_THAT(lines, ::testing::Contains("device=cpu"));
  EXPECT_THAT(lines, ::testing::Contains(::testing::StartsWith("aten_isa=")));
}

TEST(Engine, ErrorsOfTheOrderOfCallsAreErrorsNotCrashes) {
  const auto dataset = make_patterns(60);
  auto engine = std::move(make_engine(small_job("mlp"), *dataset)).value();
  EXPECT_EQ(engine->step().status().code(), Code::kInternal);
  EXPECT_EQ(engine->evaluate().status().code(), Code::kInternal);
}

}  // namespace
}  // namespace lockstep
