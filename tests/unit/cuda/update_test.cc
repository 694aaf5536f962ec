// The update kernel's element function against the optimizers of the CPU: the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "comm/base/prng.h"
#include "worker/cuda/tables.h"
#include "worker/optim/kernels.h"
#include "worker/optim/update_rules.h"

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

// Runs the rule as the kernel does, and `expected(params, state, grads)` beside it.
template <typename Rule, typename Expected>
void expect_same_bits(const typename Rule::Factors& factors, const Expected& expected) {
  Floats params = noise(1, -1);
  Floats params_cpu = params;
  Floats state[kMostStates];
  Floats state_cpu[kMostStates];
  for (uint32_t step = 0; step < kSteps; ++step) {
    const Floats grads = noise(2 + step, -1);
    UpdateBuffers buffers{params.of, {state[0].of, state[1].of, state[2].of}, grads.of};
    for (uint64_t i = 0; i < kElements; i += 4) update_quad<Rule>(buffers, i, factors);
    expected(params_cpu.of, state_cpu, grads.of);
  }
  EXPECT_EQ(std::memcmp(&params, &params_cpu, sizeof params), 0);
  EXPECT_EQ(std::memcmp(&state, &state_cpu, sizeof state), 0);
  const Floats start = noise(1, -1);
  for (uint64_t i = 0; i < kElements; ++i) EXPECT_NE(params.of[i], start.of[i]);
}

TEST(UpdateKernel, HasTheBitsOfTheCpusSgd) {
  const SgdFactors f{0.5f, 0.1f, 0.9f, 0.01f};
  expect_same_bits<Sgd>(f, [&](float* p, Floats*, const float* g) {
    sgd_update(p, nullptr, g, kElements, false, f);
  });
  expect_same_bits<SgdMomentum>(f, [&](float* p, Floats* s, const float* g) {
    sgd_update(p, s[0].of, g, kElements, false, f);
  });
  expect_same_bits<SgdNesterov>(f, [&](float* p, Floats* s, const float* g) {
    sgd_update(p, s[0].of, g, kElements, true, f);
  });
}

TEST(UpdateKernel, HasTheBitsOfTheCpusAdamAndNadam) {
  const AdamFactors adam{.grad_scale = 0.5f,
                         .decay = 0.999f,
                         .weight_decay = 0.01f,
                         .one_minus_beta1 = 0.1f,
                         .beta2 = 0.999f,
                         .one_minus_beta2 = 0.001f,
                         .step_size = 0.01f,
                         .sqrt_bias_correction2 = 0.3f,
                         .eps = 1e-8f};
  expect_same_bits<Adam>(adam, [&](float* p, Floats* s, const float* g) {
    adam_update(p, s[0].of, s[1].of, g, kElements, adam);
  });
  const NadamFactors nadam{0.5f, 0.01f, 0.1f, 0.999f, 0.001f, 0.3f, 0.02f, 0.03f, 1e-8f};
  expect_same_bits<Nadam>(nadam, [&](float* p, Floats* s, const float* g) {
    nadam_update(p, s[0].of, s[1].of, g, kElements, nadam);
  });
}

// Which state is which depends on the kind: a mix-up shows here.
TEST(UpdateKernel, HasTheBitsOfEveryKindOfTheCpusRmsprop) {
  const RmspropFactors f{0.5f, 0.01f, 0.01f, 0.9f, 0.1f, 1e-8f, 0.8f};
  expect_same_bits<Rmsprop<false, false>>(f, [&](float* p, Floats* s, const float* g) {
    rmsprop_update(p, s[0].of, nullptr, nullptr, g, kElements, f);
  });
  expect_same_bits<Rmsprop<false, true>>(f, [&](float* p, Floats* s, const float* g) {
    rmsprop_update(p, s[0].of, nullptr, s[1].of, g, kElements, f);
  });
  expect_same_bits<Rmsprop<true, false>>(f, [&](float* p, Floats* s, const float* g) {
    rmsprop_update(p, s[0].of, s[1].of, nullptr, g, kElements, f);
  });
  expect_same_bits<Rmsprop<true, true>>(f, [&](float* p, Floats* s, const float* g) {
    rmsprop_update(p, s[0].of, s[1].of, s[2].of, g, kElements, f);
  });
}

TEST(UpdateKernel, HasTheBitsOfTheCpusAdagradAndAdadelta) {
  const AdagradFactors adagrad{0.5f, 0.1f, 0.01f, 1e-8f};
  expect_same_bits<Adagrad>(adagrad, [&](float* p, Floats* s, const float* g) {
    adagrad_update(p, s[0].of, g, kElements, adagrad);
  });
  const AdadeltaFactors adadelta{0.5f, 1, 0.01f, 0.9f, 0.1f, 1e-6f};
  expect_same_bits<Adadelta>(adadelta, [&](float* p, Floats* s, const float* g) {
    adadelta_update(p, s[0].of, s[1].of, g, kElements, adadelta);
  });
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
