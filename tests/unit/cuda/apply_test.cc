// Runs the gate, the verdict and everything after them on the CPU, in the order of the stream.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "comm/base/prng.h"
#include "tests/support/same_bits.h"
#include "tests/unit/cuda/host_atomics.h"
#include "tests/unit/cuda/host_kernels.h"
#include "worker/cuda/kernels/apply_state.h"
#include "worker/cuda/kernels/tables.h"
#include "worker/optim/grad_norm.h"
#include "worker/optim/update_rules.h"

namespace lockstep::cuda {
namespace {

using testing::HostAtomics;

constexpr uint64_t kGradients = 2 * kNormBlock + 48;
constexpr uint64_t kElements = kGradients + 16;  // and 16 statistics

Totals totals_of_ranges(const float* sums, std::span<const NormRange> ranges,
                        const NormRange& statistics) {
  std::vector<BlockTotals> totals;
  for (const TotalsBlock& block : make_totals_blocks(ranges, statistics))
    totals.push_back(totals_of(sums, block));
  return sum_of_blocks(SerialTeam<kTotalsLanes>{}, totals.data(),
                       static_cast<uint32_t>(totals.size()));
}

// A worker's device memory, and the kernels in their order.
struct Device {
  struct alignas(64) Line {
    float of[16] = {};
  };
  static std::vector<Line> buffer(uint64_t key) {
    std::vector<Line> lines(kElements / 16);
    for (uint64_t i = 0; i < kElements; ++i)
      lines[i / 16].of[i % 16] = static_cast<float>(stream_value(key, i) % 2001) / 1000 - 1;
    return lines;
  }

  std::vector<Line> params = buffer(1);
  std::vector<Line> exp_avg = buffer(2);
  std::vector<Line> exp_avg_sq{kElements / 16};
  std::vector<Line> sums = buffer(4);
  std::vector<float> statistics = std::vector<float>(16, 0.25f);
  ApplyState state;
  float weight = 0;  // of the samples, for a rule with weights

  float* grads() { return sums[0].of; }

  void apply(const StepRule& rule) {
    const NormRange ranges[] = {{0, kNormBlock + 21}, {kNormBlock + 32, kNormBlock + 16}};
    const Totals totals = totals_of_ranges(grads(), ranges, {kGradients, 16});
    const float control[] = {0.5f, 0, 0, 0, weight};
    decide<HostAtomics>(state, rule, totals, control);
    if (state.verdict.applies == 0) return;
    AdamFactors factors{.beta2 = 0.99f, .one_minus_beta2 = 0.01f, .step_size = 0.1f, .eps = 1e-6f};
    factors.one_minus_beta1 = 0.1f;
    factors.grad_scale = state.verdict.grad_scale;
    const UpdateBuffers buffers{params[0].of, {exp_avg[0].of, exp_avg_sq[0].of}, grads()};
    for (uint64_t i = 0; i < kGradients; i += 4)
      update_quad<Adam>(buffers, i, factors, /*keeps_zeros=*/false);
    for (uint64_t i = 0; i < 16; ++i) statistics[i] = grads()[kGradients + i] / 2;
  }

  // Everything that a step may change, but for the gate itself.
  std::vector<std::byte> memory() const {
    std::vector<std::byte> all;
    const auto add = [&](const void* data, size_t bytes) {
      const auto* begin = static_cast<const std::byte*>(data);
      all.insert(all.end(), begin, begin + bytes);
    };
    for (const auto* lines : {&params, &exp_avg, &exp_avg_sq})
      add(lines->data(), lines->size() * sizeof(Line));
    add(statistics.data(), statistics.size() * sizeof(float));
    const LossScaleState& scale = state.loss_scale;
    add(&scale.scale, sizeof scale.scale);
    add(&scale.good_steps, sizeof scale.good_steps);
    add(&scale.skipped_steps, sizeof scale.skipped_steps);
    return all;
  }
};

StepRule rule_of(uint64_t step) {
  return {.step = step, .clip_norm = 1, .loss_scale = {.is_on = true, .growth_every = 2}};
}

TEST(ApplyGate, LetsEachStepThroughOnceAndInOrder) {
  uint64_t word = 0;
  EXPECT_FALSE(pass_gate<HostAtomics>(&word, 1));
  EXPECT_TRUE(pass_gate<HostAtomics>(&word, 0));
  EXPECT_FALSE(pass_gate<HostAtomics>(&word, 0));
  EXPECT_TRUE(pass_gate<HostAtomics>(&word, 1));
  EXPECT_EQ(steps_let_through(close_gate<HostAtomics>(&word)), 2u);
  EXPECT_FALSE(pass_gate<HostAtomics>(&word, 2));
  EXPECT_TRUE(is_gate_closed(close_gate<HostAtomics>(&word)));
  EXPECT_EQ(steps_let_through(word), 2u);
}

// The answer to "prepare" must be true whoever comes first.
TEST(ApplyGate, ClosedWhileStepsPassSaysHowManyHavePassed) {
  for (int round = 0; round < 50; ++round) {
    uint64_t word = 0;
    uint64_t passed = 0;
    std::thread steps([&] {
      while (passed < 100'000 && pass_gate<HostAtomics>(&word, passed)) ++passed;
    });
    const uint64_t answer = close_gate<HostAtomics>(&word);
    steps.join();
    EXPECT_EQ(steps_let_through(answer), passed);
  }
}

// A collective that was aborted in any bucket leaves garbage from there on.
TEST(ApplyGate, ClosedLeavesEveryBitAsItWasWhateverTheBucketsHold) {
  for (uint64_t bucket = 0; bucket < kElements; bucket += kElements / 4) {
    Device device;
    device.apply(rule_of(0));
    const std::vector<std::byte> before = device.memory();
    close_gate<HostAtomics>(&device.state.gate);
    for (uint64_t i = bucket; i < kElements; ++i)
      device.grads()[i] = i % 3 == 0 ? std::numeric_limits<float>::infinity() : 7.0f;
    device.apply(rule_of(1));
    EXPECT_EQ(device.state.verdict.passed, 0u);
    EXPECT_EQ(device.memory(), before) << bucket;
  }
}

TEST(ApplyGate, OpenLetsTheStepChangeEverything) {
  Device device;
  const std::vector<std::byte> before = device.memory();
  device.apply(rule_of(0));
  EXPECT_EQ(device.state.verdict.applies, 1u);
  EXPECT_NE(device.memory(), before);
}

TEST(StepVerdict, DividesByTheWeightOfTheSamplesAndPassesOverAStepWithoutAny) {
  StepRule rule;
  rule.has_weights = true;
  Device half;
  half.weight = 0.5f;
  half.apply(rule);
  EXPECT_EQ(half.state.verdict.applies, 1u);
  EXPECT_EQ(half.state.verdict.grad_scale, 2);
  for (const float none : {0.0f, -1.0f, std::nanf("")}) {
    Device device;
    const Device fresh = device;
    device.weight = none;
    device.apply(rule);
    EXPECT_EQ(device.state.verdict.passed, 1u);
    EXPECT_EQ(device.state.verdict.applies, 0u) << none;
    EXPECT_EQ(device.state.loss_scale.scale, fresh.state.loss_scale.scale);
  }
}

TEST(StepVerdict, SkipsAStepThatOverflowedAndHalvesTheScale) {
  for (const uint64_t where : {uint64_t{0}, kNormBlock + 20, kGradients - 1, kGradients + 3}) {
    Device device;
    device.state.loss_scale.scale = 1024;
    const Device fresh = device;
    device.grads()[where] = where % 2 == 0 ? std::numeric_limits<float>::infinity() : std::nanf("");
    device.apply(rule_of(0));
    EXPECT_EQ(device.state.verdict.passed, 1u);
    EXPECT_EQ(device.state.verdict.applies, 0u) << where;
    EXPECT_EQ(device.state.loss_scale.scale, 512.0f);
    EXPECT_EQ(device.state.loss_scale.skipped_steps, 1);
    EXPECT_TRUE(same_bits({device.params[0].of, kElements}, {fresh.params[0].of, kElements}));
    EXPECT_EQ(device.statistics, fresh.statistics);
  }
}

TEST(StepVerdict, GrowsTheScaleAfterStepsThatFitAndNeverBeyondAFloat) {
  Device device;
  device.state.loss_scale.scale = 8;
  for (uint64_t step = 0; step < 3; ++step) device.apply(rule_of(step));
  EXPECT_EQ(device.state.loss_scale.scale, 16.0f);
  EXPECT_EQ(device.state.loss_scale.good_steps, 1);
  LossScaleState largest{.scale = 0x1p127f, .good_steps = 1};
  EXPECT_TRUE(update_loss_scale(largest, rule_of(0).loss_scale, true));
  EXPECT_EQ(largest.scale, 0x1p127f);
  LossScaleState smallest{.scale = 1};
  EXPECT_TRUE(update_loss_scale(smallest, rule_of(0).loss_scale, false));
}

TEST(StepVerdict, UnscalesAndClipsAsTheCpuDoes) {
  Device device;
  device.state.loss_scale.scale = 4;
  const NormRange ranges[] = {{0, kNormBlock + 21}, {kNormBlock + 32, kNormBlock + 16}};
  const double squares = sum_of_squares(device.grads(), ranges);
  device.apply(rule_of(0));
  EXPECT_FLOAT_EQ(device.state.verdict.grad_scale, clip_scale(squares / 16, 1) / 4);
  Device unclipped;
  unclipped.apply({.step = 0, .clip_norm = 0, .loss_scale = {}});
  EXPECT_EQ(unclipped.state.verdict.grad_scale, 1.0f);
}

TEST(Totals, AreTheCpusNormButForTheOrderOfItsBlocks) {
  Device device;
  const NormRange ranges[] = {{0, 2 * kNormBlock + 5}, {2 * kNormBlock + 16, 3}};
  const Totals totals = totals_of_ranges(device.grads(), ranges, {kGradients, 16});
  EXPECT_DOUBLE_EQ(totals.squares, sum_of_squares(device.grads(), ranges));
  EXPECT_TRUE(totals.is_finite);
}

// The order that apply_state.h documents: lanes, then warps of lanes, then the warps.
TEST(Totals, OfManyBlocksAreAddedInLanesAndAFixedTree) {
  constexpr uint32_t kBlocks = 5 * kTotalsLanes + 77;
  std::vector<BlockTotals> totals(kBlocks);
  double lanes[kTotalsLanes] = {}, in_order = 0;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    totals[i].squares = std::ldexp(static_cast<float>(stream_value(3, i) % 1'000'003),
                                   -static_cast<int>(stream_value(5, i) % 48));
    lanes[i % kTotalsLanes] += static_cast<double>(totals[i].squares);
    in_order += static_cast<double>(totals[i].squares);
  }
  for (uint32_t half = 16; half > 0; half /= 2) {
    for (uint32_t lane = 0; lane < kTotalsLanes; ++lane)
      if (lane % 32 < half) lanes[lane] += lanes[lane + half];
  }
  for (uint32_t half = 16; half > 0; half /= 2) {
    for (uint32_t warp = 0; warp < half; ++warp) lanes[32 * warp] += lanes[32 * (warp + half)];
  }
  const SerialTeam<kTotalsLanes> team;
  const Totals sum = sum_of_blocks(team, totals.data(), kBlocks);
  EXPECT_EQ(sum.squares, lanes[0]);
  EXPECT_NE(lanes[0], in_order) << "these values show no order";
  EXPECT_NEAR(sum.squares, in_order, 1e-12 * in_order);
  EXPECT_TRUE(sum.is_finite);
  for (const uint32_t where : {0u, kTotalsLanes - 1, kBlocks - 1}) {
    totals[where].is_finite = 0;
    EXPECT_FALSE(sum_of_blocks(team, totals.data(), kBlocks).is_finite) << where;
    totals[where].is_finite = 1;
  }
  EXPECT_EQ(sum_of_blocks(team, totals.data(), 0).squares, 0.0);
}

}  // namespace
}  // namespace lockstep::cuda
