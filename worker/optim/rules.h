// The optimizers' factors: what elements.h needs, from the settings and the step.
// Internal to the optimizers. Flat state is named as PyTorch names it.
#pragma once

#include <string>
#include <vector>

#include "worker/optim/kernels.h"
#include "worker/optim/optimizer.h"

namespace lockstep {

struct SgdRule {
  wire::OptimizerSpec spec;
  std::vector<std::string> state_names() const;
  SgdFactors factors(const OptimizerStep& step, const OptimizerGroup& group) const;
  void pass(float* params, float* const* state, const float* grads, uint64_t n,
            const SgdFactors& factors) const;
};

// adam: L2; adamw: decoupled decay.
struct AdamRule {
  wire::OptimizerSpec spec;
  std::vector<std::string> state_names() const { return {"exp_avg", "exp_avg_sq"}; }
  AdamFactors factors(const OptimizerStep& step, const OptimizerGroup& group) const;
  void pass(float* params, float* const* state, const float* grads, uint64_t n,
            const AdamFactors& factors) const;
};

struct NadamRule {
  wire::OptimizerSpec spec;
  // mu_1 ... mu_t of the last step asked for: a function of t alone, kept because it takes t
  // multiplications.
  Step counted = 0;
  double product = 1;
  std::vector<std::string> state_names() const { return {"exp_avg", "exp_avg_sq"}; }
  NadamFactors factors(const OptimizerStep& step, const OptimizerGroup& group);
  void pass(float* params, float* const* state, const float* grads, uint64_t n,
            const NadamFactors& factors) const;
};

struct RmspropRule {
  wire::OptimizerSpec spec;
  std::vector<std::string> state_names() const;
  RmspropFactors factors(const OptimizerStep& step, const OptimizerGroup& group) const;
  void pass(float* params, float* const* state, const float* grads, uint64_t n,
            const RmspropFactors& factors) const;
};

struct AdagradRule {
  wire::OptimizerSpec spec;
  std::vector<std::string> state_names() const { return {"sum"}; }
  AdagradFactors factors(const OptimizerStep& step, const OptimizerGroup& group) const;
  void pass(float* params, float* const* state, const float* grads, uint64_t n,
            const AdagradFactors& factors) const;
};

struct AdadeltaRule {
  wire::OptimizerSpec spec;
  std::vector<std::string> state_names() const { return {"square_avg", "acc_delta"}; }
  AdadeltaFactors factors(const OptimizerStep& step, const OptimizerGroup& group) const;
  void pass(float* params, float* const* state, const float* grads, uint64_t n,
            const AdadeltaFactors& factors) const;
};

}  // namespace lockstep
