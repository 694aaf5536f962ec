// The update kernel's element function against the optimizers of the CPU: the same bits.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/base/prng.h"
#include "tests/support/same_bits.h"
#include "worker/cuda/kernels/tables.h"
#include "worker/optim/update_range.h"

namespace lockstep::cuda {
namespace {

constexpr uint64_t kElements = 64;
constexpr uint32_t kSteps = 4;

struct alignas(64) Floats {
  float of[kElements] = {};
};

Floats noise(uint64_t key, float least) {
  Floats out;
  for (uint64_t i = 0; i < kElements; ++i)
    out.of[i] = least + static_cast<float>(stream_value(key, i) % 2001) / 1000;
  return out;
}

// Runs the rule as the kernel does, four elements at a time, and as the CPU does, all at once.
template <typename Rule>
void expect_same_bits(const typename Rule::Factors& factors, bool keeps_zeros) {
  Floats params = noise(1, -1);
  constexpr uint64_t kZero = 5;
  params.of[kZero] = 0;
  Floats params_cpu = params;
  Floats state[kMostStates];
  Floats state_cpu[kMostStates];
  GroupFactors<Rule> groups;
  groups.of[1] = factors;
  for (uint32_t step = 0; step < kSteps; ++step) {
    const Floats grads = noise(2 + step, -1);
    const UpdateBuffers buffers{params.of, {state[0].of, state[1].of, state[2].of}, grads.of};
    for (uint64_t i = 0; i < kElements; i += 4) update_quad<Rule>(buffers, i, factors, keeps_zeros);
    UpdateBuffers on_cpu{params_cpu.of, {}, grads.of};
    for (int k = 0; k < Rule::kStates; ++k) on_cpu.state[k] = state_cpu[k].of;
    for (const uint64_t start : {uint64_t{0}, kElements / 2})
      update_range(groups, on_cpu, {start, kElements / 2, /*group=*/1}, keeps_zeros);
  }
  EXPECT_TRUE(same_bits(params.of, params_cpu.of));
  for (int k = 0; k < kMostStates; ++k) EXPECT_TRUE(same_bits(state[k].of, state_cpu[k].of));
  const Floats start = noise(1, -1);
  for (uint64_t i = 0; i < kElements; ++i)
    if (i != kZero) {
      EXPECT_NE(params.of[i], start.of[i]);
    }
  EXPECT_EQ(params.of[kZero] == 0, keeps_zeros);
  for (int k = 0; k < Rule::kStates; ++k) EXPECT_NE(state[k].of[0], 0) << "state " << k;
}

template <typename Rule>
void expect_same_bits(const typename Rule::Factors& factors) {
  for (const bool keeps_zeros : {false, true}) expect_same_bits<Rule>(factors, keeps_zeros);
}

TEST(UpdateKernel, HasTheBitsOfTheCpusSgd) {
  const SgdFactors f{0.5f, 0.1f, 0.9f, 0.01f};
  expect_same_bits<Sgd>(f);
  expect_same_bits<SgdMomentum>(f);
  expect_same_bits<SgdNesterov>(f);
}

TEST(UpdateKernel, HasTheBitsOfTheCpusAdamAndNadam) {
  expect_same_bits<Adam>({.grad_scale = 0.5f,
                          .decay = 0.999f,
                          .weight_decay = 0.01f,
                          .one_minus_beta1 = 0.1f,
                          .beta2 = 0.999f,
                          .one_minus_beta2 = 0.001f,
                          .step_size = 0.01f,
                          .sqrt_bias_correction2 = 0.3f,
                          .eps = 1e-8f});
  expect_same_bits<Nadam>({0.5f, 0.01f, 0.1f, 0.999f, 0.001f, 0.3f, 0.02f, 0.03f, 1e-8f});
}

TEST(UpdateKernel, HasTheBitsOfEveryKindOfTheCpusRmsprop) {
  const RmspropFactors f{0.5f, 0.01f, 0.01f, 0.9f, 0.1f, 1e-8f, 0.8f};
  expect_same_bits<Rmsprop<false, false>>(f);
  expect_same_bits<Rmsprop<false, true>>(f);
  expect_same_bits<Rmsprop<true, false>>(f);
  expect_same_bits<Rmsprop<true, true>>(f);
}

TEST(UpdateKernel, HasTheBitsOfTheCpusAdagradAndAdadelta) {
  expect_same_bits<Adagrad>({0.5f, 0.1f, 0.01f, 1e-8f});
  expect_same_bits<Adadelta>({0.5f, 1, 0.01f, 0.9f, 0.1f, 1e-6f});
}

TEST(UpdateChunks, CoverEverySegmentOnceAndKeepItsGroup) {
  const OptimizerSegment segments[] = {{0, 2 * kUpdateChunk + 32, 1},
                                       {2 * kUpdateChunk + 32, 16, 0}};
  const std::vector<UpdateChunk> chunks = make_update_chunks(segments);
  ASSERT_EQ(chunks.size(), 4u);
  uint64_t at = 0;
  for (const UpdateChunk& chunk : chunks) {
    EXPECT_EQ(chunk.start, at);
    EXPECT_LE(chunk.length, kUpdateChunk);
    EXPECT_EQ(chunk.group, at < segments[1].start ? 1u : 0u);
    at += chunk.length;
  }
  EXPECT_EQ(at, 2 * kUpdateChunk + 48);
}

}  // namespace
}  // namespace lockstep::cuda
