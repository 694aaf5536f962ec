// Decides, on the device and in stream order, whether and how a step is applied.
//
//   buckets reduced -> block_totals (norm and overflow of each block) -> decide (one block: gate,
//   loss scale, clipping) -> update, statistics: they do nothing unless the verdict says so
//
// Overflow needs no collective: a value that is not finite in any slot stays so in the sum, and all
// ranks hold the same sums. Overflow does not need the host either: the verdict stays on the
// device, and the host reads a copy of the verdict with the losses.
//
// INVARIANTS
//  A1 Parameters, optimizer state and statistics change only after a verdict with `applies`. Loss
//     scale and counters change only in decide().
//  A2 A step that did not pass the gate changes nothing at all, not even the loss scale.
//
// Thread-safety: decide() in one thread; the gate's word is atomic.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "comm/collectives/gate_word.h"
#include "worker/cuda/kernels/team.h"
#include "worker/optim/loss_scale_rule.h"
#include "worker/optim/norm_elements.h"

namespace lockstep::cuda {

// Elements [start, start + length) for one team; at most kNormBlock.
struct TotalsBlock {
  uint64_t start = 0;
  uint32_t length = 0;
  uint32_t in_norm = 0;  // 1: a gradient; 0: statistics, checked for overflow only
};

struct BlockTotals {
  float squares = 0;
  uint32_t is_finite = 1;
};

struct StepVerdict {
  uint32_t passed = 0;   // the gate let the step pass: the step counts
  uint32_t applies = 0;  // passed, and did not overflow
  float grad_scale = 1;  // unscaling and clipping in one factor
  float loss = 0;
};

// One per worker, in device memory.
struct ApplyState {
  uint64_t gate = 0;  // gate_word.h
  LossScaleState loss_scale;
  StepVerdict verdict;
};

struct StepRule {
  uint64_t step = 0;
  double clip_norm = 0;  // 0: none
  LossScaleRule loss_scale;
  bool has_weights = false;  // of samples: their share stands in the control section
};

// Elements of the control section (worker/engine/flat_layout.h) that the decision reads.
inline constexpr uint32_t kLossAt = 0;
inline constexpr uint32_t kWeightAt = 4;

// The sum of the blocks. A team of kTotalsLanes adds it (team.h): lane l adds blocks l, l +
// kTotalsLanes, ... in order, and a fixed tree adds the lanes, in double precision. The CPU adds
// the same blocks one after the other (grad_norm.h). So the two norms may differ in the last bits
// of their double, and runs on the two devices never mix (their fingerprints differ).
//
// YARDSTICK: the decision reads 8 bytes for 4,096 elements, 0.24 MB for 124 M parameters. One block
// of threads needs 30 rounds of loads for them and ten steps of the tree, about 10 us.
struct Totals {
  double squares = 0;
  bool is_finite = true;
};

inline constexpr uint32_t kTotalsLanes = 1024;

template <typename Team>
LOCKSTEP_TEAM_CODE Totals sum_of_blocks(const Team& team, const BlockTotals* totals,
                                        uint32_t blocks) {
  static_assert(Team::kLanes == kTotalsLanes);
  return team.fold(
      blocks, Totals{},
      [&](Totals& lane, uint32_t i) {
        lane.squares += static_cast<double>(totals[i].squares);
        lane.is_finite = lane.is_finite && totals[i].is_finite != 0;
      },
      [](const Totals& a, const Totals& b) {
        return Totals{a.squares + b.squares, a.is_finite && b.is_finite};
      });
}

template <typename Atomics>
LOCKSTEP_HOST_DEVICE void decide(ApplyState& state, const StepRule& rule, const Totals& totals,
                                 const float* control) {
  StepVerdict verdict;
  verdict.loss = control[kLossAt];
  const float weight = rule.has_weights ? control[kWeightAt] : 1.0f;
  verdict.passed = pass_gate<Atomics>(&state.gate, rule.step) ? 1 : 0;
  if (verdict.passed != 0) {
    const float unscale = 1 / (state.loss_scale.scale * weight);
    const auto factor = static_cast<double>(unscale);
    verdict.grad_scale = unscale;
    if (rule.clip_norm > 0)
      verdict.grad_scale = clip_scale(totals.squares * factor * factor, rule.clip_norm) * unscale;
    const bool applies =
        !is_weight(weight) ? pass_over_step(state.loss_scale)
                           : update_loss_scale(state.loss_scale, rule.loss_scale, totals.is_finite);
    verdict.applies = applies ? 1 : 0;
  }
  state.verdict = verdict;
}

}  // namespace lockstep::cuda
