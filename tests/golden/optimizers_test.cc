// Every optimizer's course against PyTorch's own (optimizers.py).
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "worker/optim/grad_norm.h"
#include "worker/optim/optimizer.h"

namespace lockstep {
namespace {

constexpr uint64_t kMatrix = 15;  // elements; the vector begins at the next multiple of 16
constexpr uint64_t kVector = 7;
constexpr uint64_t kVectorBegin = 16;
constexpr uint64_t kFlat = 32;

// As numbers() in optimizers.py.
void fill_numbers(uint64_t key, uint64_t n, float scale, float* out) {
  uint64_t state = key * 2654435761ull % (1ull << 32);
  for (uint64_t i = 0; i < n; ++i) {
    state = (1664525 * state + 1013904223) % (1ull << 32);
    out[i] = (static_cast<float>(static_cast<double>(state >> 8) / (1 << 23) - 1)) * scale;
  }
}

void expect_course(const wire::OptimizerSpec& spec, const nlohmann::json& expected) {
  const auto made = Optimizer::create(spec, kFlat);
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  float params[kFlat] = {};
  fill_numbers(1, kMatrix, 1, params);
  fill_numbers(2, kVector, 1, params + kVectorBegin);
  const OptimizerSegment segments[] = {{0, kVectorBegin, 0}, {kVectorBegin, 16, 1}};
  const OptimizerGroup groups[] = {
      {}, {.lr_scale = 1, .weight_decay_scale = spec.spare_vectors() ? 0.0 : 1.0}};
  const NormRange ranges[] = {{0, kMatrix}, {kVectorBegin, kVector}};
  for (Step step = 0; step < expected.size(); ++step) {
    float grads[kFlat] = {};
    const float scale = step % 3 == 2 ? 3 : 1;
    fill_numbers(10 + 2 * step, kMatrix, scale, grads);
    fill_numbers(11 + 2 * step, kVector, scale, grads + kVectorBegin);
    const float grad_scale =
        spec.clip_norm() > 0 ? clip_scale(sum_of_squares(grads, ranges), spec.clip_norm()) : 1;
    (*made)->update({step, spec.lr(), grad_scale}, segments, groups, params, grads);
    const std::vector<float> want = expected[step];
    ASSERT_EQ(want.size(), kMatrix + kVector);
    for (uint64_t i = 0; i < want.size(); ++i) {
      const float got = params[i < kMatrix ? i : kVectorBegin + i - kMatrix];
      EXPECT_NEAR(got, want[i], 2e-6 * std::max(1.0f, std::abs(want[i])))
          << "step " << step << " element " << i;
    }
  }
}

TEST(GoldenOptimizers, EveryOptimizerFollowsPyTorchs) {
  std::ifstream in(std::string(LOCKSTEP_GOLDEN_DIR) + "/optimizers.json");
  const auto golden = nlohmann::json::parse(in);
  ASSERT_EQ(golden["runs"].size(), 11u);
  for (const auto& run : golden["runs"]) {
    const std::string text = run["optimizer"].dump();
    SCOPED_TRACE(text);
    wire::OptimizerSpec spec;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text, &spec).ok());
    ASSERT_EQ(run["parameters"].size(), 12u);
    expect_course(spec, run["parameters"]);
  }
}

}  // namespace
}  // namespace lockstep
