// A collective that is aborted while a bucket is half summed, in every bucket in turn: as a host's,
// which says so, and as a GPU's, which returns as if it had finished and lets the rest of the step
// run over garbage, up to the gate.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "comm/collectives/forwarding.h"
#include "comm/collectives/gate_word.h"
#include "tests/unit/cuda/host_atomics.h"
#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::HostAtomics;
using testing::LoopbackWorld;
using testing::small_job;
using testing::state_bytes;
using testing::TrainResult;

constexpr uint64_t kBucketBytes = 1024;
constexpr Step kSteps = 12;
constexpr uint32_t kBucketsAtLeast = 3;

enum class Aborted { kSaysSo, kLooksFinished };

// When, how, and what it does to each rank's gate. Shared by the ranks of a world.
struct Plan {
  Aborted how = Aborted::kSaysSo;
  Step step = 0;
  uint32_t bucket = 0;                   // its place among those that leave
  std::vector<uint64_t> gates;           // gate_word.h, by rank
  std::atomic<uint32_t> most_bucket{0};  // the last that left, in any step
};

class AbortedHalfway final : public Forwarding<Collective> {
 public:
  AbortedHalfway(std::unique_ptr<Collective> inner, Plan& plan)
      : Forwarding(std::move(inner)), plan_(plan) {}

  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    place_ = tag.step == step_ ? place_ + 1 : 0;
    step_ = tag.step;
    if (place_ > plan_.most_bucket) plan_.most_bucket = place_;
    if (tag.step != plan_.step || place_ < plan_.bucket) return Forwarding::all_reduce(tag, range);
    if (place_ > plan_.bucket) return leave_garbage(range);
    const uint64_t half = range.begin + range.size() / 2 / kCutElements * kCutElements;
    LOCKSTEP_RETURN_IF_ERROR(Forwarding::all_reduce(tag, {range.begin, half}));
    return leave_garbage({half, range.end});
  }

 private:
  // Leaves garbage, as if from earlier steps or from no step at all.
  Status leave_garbage(const ElementRange& range) {
    auto* sums = const_cast<float*>(reduced());
    for (uint64_t i = range.begin; i < range.end; ++i)
      sums[i] = i % 3 == 0 ? std::numeric_limits<float>::infinity() : 7.0f;
    if (plan_.how == Aborted::kLooksFinished) {
      close_gate<HostAtomics>(&plan_.gates[rank()]);  // every survivor, before anything is aborted
      return Status::ok();
    }
    abort();
    return {Code::kAborted, "aborted half-way"};
  }

  Plan& plan_;
  Step step_ = kSteps;  // of the last call; how many were before it in that step
  uint32_t place_ = 0;
};

class AbortTest : public ::testing::TestWithParam<std::tuple<const char*, const char*, uint32_t>> {
 protected:
  static wire::JobSpec job() {
    const auto [optimizer, precision, ranks] = GetParam();
    wire::JobSpec job = small_job("cnn", precision);
    job.mutable_model()->set_batch_norm(true);
    job.mutable_optimizer()->set_name(optimizer);
    job.mutable_optimizer()->set_momentum(0.9);
    job.mutable_optimizer()->set_clip_norm(0.5);
    job.mutable_train()->set_loss_scale_growth_every(2);  // so that it moves all the time
    return job;
  }

  void begin_generation() {
    plan.gates.assign(world->ranks(), world->engine(0).applied_steps());
    const auto gate_of = [this](uint32_t rank) {
      StepGate gate;
      gate.try_enter = [this, rank] {
        return pass_gate<HostAtomics>(&plan.gates[rank], world->engine(rank).applied_steps());
      };
      return gate;
    };
    world->begin_generation(kSteps, gate_of, [this](auto inner, const auto&) {
      return std::make_unique<AbortedHalfway>(std::move(inner), plan);
    });
  }

  // Parameters, statistics, optimizer state and loss scale of every rank.
  std::vector<std::string> states() {
    std::vector<std::string> all;
    for (uint32_t r = 0; r < world->ranks(); ++r)
      all.push_back(state_bytes(world->engine(r), true));
    return all;
  }

  void expect_untouched_by(Aborted how, uint32_t bucket) {
    SCOPED_TRACE(::testing::Message() << "bucket " << bucket
                                      << ", looks finished: " << (how == Aborted::kLooksFinished));
    const Step step = world->engine(0).applied_steps();
    const std::vector<std::string> before = states();
    plan.how = how;
    plan.step = step;
    plan.bucket = bucket;
    for (const auto& outcome : world->step_all()) {
      ASSERT_FALSE(outcome.is_ok());
      EXPECT_EQ(outcome.status().code(), Code::kAborted);
    }
    EXPECT_TRUE(states() == before);
    for (uint32_t r = 0; r < world->ranks(); ++r) {
      EXPECT_EQ(world->engine(r).applied_steps(), step);
      EXPECT_EQ(steps_let_through(plan.gates[r]), step);
    }
    plan.step = kSteps;
    begin_generation();
  }

  Plan plan;
  std::unique_ptr<LoopbackWorld> world;
};

TEST_P(AbortTest, InAnyBucketLeavesEveryBitAndTheNextGenerationGoesOnToTheSameBits) {
  const auto dataset = testing::make_patterns(80);
  const auto runs = even_runs(4, std::get<2>(GetParam()));
  const TrainResult expected = testing::train(job(), *dataset, runs, kSteps, kBucketBytes);

  world = std::make_unique<LoopbackWorld>(job(), *dataset, runs, kBucketBytes);
  plan.step = kSteps;  // none yet
  begin_generation();
  Step step = 2;  // with moments of some size
  world->train_to(step);
  const uint32_t buckets = plan.most_bucket + 1;
  ASSERT_GE(buckets, kBucketsAtLeast);
  for (uint32_t bucket = 0; bucket < buckets; ++bucket) {
    expect_untouched_by(Aborted::kSaysSo, bucket);
    expect_untouched_by(Aborted::kLooksFinished, bucket);
    world->train_to(step = std::min<Step>(step + 1, kSteps - 1));
  }
  const TrainResult redone = world->train_to(kSteps);
  EXPECT_EQ(redone.losses, expected.losses);
  EXPECT_TRUE(redone.state == expected.state);
}

INSTANTIATE_TEST_SUITE_P(All, AbortTest,
                         ::testing::Combine(::testing::Values("adamw", "sgd"),
                                            ::testing::Values("fp32", "fp16"),
                                            ::testing::Values(1u, 2u)),
                         [](const auto& c) {
                           return std::string(std::get<0>(c.param)) + "_" + std::get<1>(c.param) +
                                  "_" + std::to_string(std::get<2>(c.param)) + "_ranks";
                         });

}  // namespace
}  // namespace lockstep
