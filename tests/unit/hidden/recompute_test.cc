// model.recompute gives the bits of the model without it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/made_documents.h"
#include "tests/unit/engine/plain_module.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::PlainModule;
using testing::TrainResult;

constexpr Step kRecomputedSteps = 5;
constexpr uint64_t kRecomputedBucket = 4096;

wire::JobSpec with_recompute(wire::JobSpec job) {
  job.mutable_model()->set_recompute(true);
  return job;
}

TrainResult on_plain_device(const wire::JobSpec& job, const data::Dataset& dataset) {
  PlainModule module;
  LoopbackWorld world(job, dataset, even_runs(4, 1), kRecomputedBucket, nullptr, {&module});
  world.begin_generation(kRecomputedSteps);
  return world.train_to(kRecomputedSteps);
}

void expect_the_same(const wire::JobSpec& job, const data::Dataset& dataset) {
  const wire::JobSpec recomputing = with_recompute(job);
  const TrainResult whole = testing::train(job, dataset, even_runs(4, 1), kRecomputedSteps);
  for (const uint32_t ranks : {1u, 3u}) {
    const TrainResult again = testing::train(recomputing, dataset, even_runs(4, ranks),
                                             kRecomputedSteps, kRecomputedBucket);
    EXPECT_EQ(again.losses, whole.losses) << ranks;
    EXPECT_TRUE(again.state == whole.state) << ranks;
  }
  EXPECT_TRUE(on_plain_device(recomputing, dataset).state == on_plain_device(job, dataset).state);
}

TEST(Recompute, GivesTheSameBitsInEveryPrecisionWithDropout) {
  const auto text = testing::make_text(30, 16, 200);
  for (const char* precision : {"fp32", "bf16", "fp16", "fp8"}) {
    SCOPED_TRACE(precision);
    wire::JobSpec job = testing::small_gpt2(16, precision);
    job.mutable_train()->set_loss_scale(1024);
    job.mutable_model()->set_dropout(0.1);
    expect_the_same(job, *text);
  }
}

TEST(Recompute, GivesTheSameBitsOnDocuments) {
  const auto documents = testing::make_documents(120, 30);
  for (const auto& dataset : {testing::packed(documents, 80), testing::padded(documents, 80)})
    expect_the_same(testing::small_gpt2(80), *dataset);
}

TEST(Recompute, GivesTheSameBitsWithFrozenParameters) {
  const auto text = testing::make_text(30, 16, 200);
  for (const std::vector<std::string>& frozen :
       {std::vector<std::string>{"w?e.weight", "h.0.*"}, {"h.1.attn.*", "h.0.ln_1.bias"}}) {
    wire::JobSpec job = testing::small_gpt2(16);
    for (const std::string& match : frozen) {
      wire::OptimizerGroupSpec& group = *job.mutable_optimizer()->add_groups();
      group.set_match(match);
      group.set_freeze(true);
    }
    expect_the_same(job, *text);
  }
}

TEST(Recompute, IsRefusedForOtherModels) {
  const auto dataset = testing::make_patterns(20);
  EXPECT_THAT(testing::make_engine(with_recompute(testing::small_job("cnn")), *dataset).status(),
              FailsWith(Code::kUsage, Names("model.recompute", "cnn"), Says("gpt2")));
}

}  // namespace
}  // namespace lockstep
