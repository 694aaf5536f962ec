// train.precision fp8 in the engine: for whom it is, what of a run it changes, what it leaves as
// with bf16. precision_test.cc and accelerator_test.cc compare worlds, recompute_test.cc
// recomputing.
#include "worker/cuda/kernels/fp8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "worker/torch/engine/numerics_effect.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using testing::even_runs;
using ::testing::HasSubstr;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::make_text;
using ::testing::Not;
using testing::PlainModule;
using testing::small_gpt2;
using testing::small_job;

constexpr uint32_t kFp8Block = 16;
constexpr uint32_t kFp8Vocabulary = 200;

TEST(Fp8, IsRefusedForOtherModelsWidthsAndGpus) {
  const auto text = make_text(30, kFp8Block, kFp8Vocabulary);
  EXPECT_THAT(testing::make_engine(small_job("cnn", "fp8"), *make_patterns(20)),
              FailsWith(Code::kUsage, Names("gpt2"), Advises("train.precision=bf16")));
  wire::JobSpec odd = small_gpt2(kFp8Block, "fp8");
  odd.mutable_model()->set_n_embd(24);
  EXPECT_THAT(testing::make_engine(odd, *text),
              FailsWith(Code::kUsage, Names("24"), Advises("model.n_embd=32")));
  PlainModule module;
  EXPECT_TRUE(testing::make_engine(small_gpt2(kFp8Block, "fp8"), *text, nullptr, &module).is_ok());
  module.facts = {.name = "NVIDIA A100-SXM4-80GB", .major = 8};
  EXPECT_THAT(testing::make_engine(small_gpt2(kFp8Block, "fp8"), *text, nullptr, &module),
              FailsWith(Code::kConfig, Names("NVIDIA A100-SXM4-80GB", "8.0"),
                        Advises("train.precision=bf16")));
  EXPECT_TRUE(testing::make_engine(small_gpt2(kFp8Block, "bf16"), *text, nullptr, &module).is_ok());
}

// An old run has neither line, and its results are without products in fp8 (ruling 11).
TEST(Fp8, IsInTheFingerprintOfItsRunsAlone) {
  const auto text = make_text(30, kFp8Block, kFp8Vocabulary);
  const auto lines = [&](const std::string& precision, PlainModule* module = nullptr) {
    return testing::make_engine(small_gpt2(kFp8Block, precision), *text, nullptr, module)
        .value()
        ->fingerprint();
  };
  const std::string recipe = std::string("fp8=") + cuda::kFp8Recipe;
  EXPECT_THAT(lines("fp8"), Contains("precision=fp8"));
  EXPECT_THAT(lines("fp8"), Contains(recipe));
  EXPECT_THAT(lines("fp8"), Contains("results=" + numerics_effect(at::kBFloat16, true)));
  EXPECT_THAT(lines("bf16"), Not(Contains(HasSubstr("fp8"))));
  EXPECT_THAT(lines("bf16"), Contains("results=" + numerics_effect(at::kBFloat16)));
  EXPECT_NE(numerics_effect(at::kBFloat16), numerics_effect(at::kBFloat16, true));
  PlainModule module;
  EXPECT_THAT(lines("fp8", &module),
              Contains("results=" + numerics_effect_on(at::kCPU, at::kBFloat16, true)));
}

TEST(Fp8, OnACpuIsNoted) {
  const auto text = make_text(30, kFp8Block, kFp8Vocabulary);
  const auto notes = [&](const char* precision) {
    return testing::make_engine(small_gpt2(kFp8Block, precision), *text).value()->notes();
  };
  EXPECT_THAT(notes("fp8"), Contains(HasSubstr("bf16")));
  EXPECT_TRUE(notes("bf16").empty());
}

TEST(Fp8, EvaluatesInBf16AndTrainsWithTheDevicesCasts) {
  const auto text = make_text(30, kFp8Block, kFp8Vocabulary);
  const auto losses = [&](const char* precision, PlainModule* module) {
    std::vector<DeviceModule*> modules;
    if (module != nullptr) modules.push_back(module);
    LoopbackWorld world(small_gpt2(kFp8Block, precision), *text, even_runs(4, 1), 0, text.get(),
                        modules);
    world.begin_generation(2);
    const auto report = world.evaluate_all();
    EXPECT_TRUE(report[0].is_ok()) << report[0].status().message();
    if (module != nullptr) {
      EXPECT_EQ(module->fp8.calls, 0u);
    }
    return std::pair(report[0]->loss(), world.train_to(1).losses[0]);
  };
  const auto [eval8, train8] = losses("fp8", nullptr);
  const auto [eval16, train16] = losses("bf16", nullptr);
  EXPECT_EQ(eval8, eval16);
  EXPECT_NE(train8, train16);
  EXPECT_NEAR(train8, train16, 0.02);
  PlainModule module;
  losses("fp8", &module);
  // 4 slots, 2 blocks, 4 layers: x, weight and gradient.
  EXPECT_EQ(module.fp8.calls, 4u * 2 * 4 * 3);
}

// A weight beyond all numbers: the loss tells, and the coordinator names the samples
// (decide/bad_loss.cc).
TEST(Fp8, AValueThatIsNoNumberMakesTheLossNone) {
  const auto text = make_text(30, kFp8Block, kFp8Vocabulary);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    LoopbackWorld world(small_gpt2(kFp8Block, "fp8"), *text, even_runs(4, 1));
    auto& engine = world.engine(0);
    auto state = testing::state_of(engine);
    const auto weight = std::find_if(state.begin(), state.end(), [](const StateTensor& tensor) {
      return tensor.name == "h.1.mlp.c_fc.weight";
    });
    ASSERT_NE(weight, state.end());
    std::memcpy(weight->data + 40, &bad, sizeof bad);
    ASSERT_TRUE(engine.install_state(state, 0).is_ok());
    world.begin_generation(1);
    const auto outcome = world.step_all();
    ASSERT_TRUE(outcome[0].is_ok()) << outcome[0].status().message();
    EXPECT_TRUE(std::isnan(outcome[0]->record.loss()));
  }
}

}  // namespace
}  // namespace lockstep
