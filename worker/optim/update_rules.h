// The optimizers as types, so that one kernel template serves them all (elements.h has the
// arithmetic, rules.h computes the factors and gives the order of states).
//
// A rule has:  Factors, with a grad_scale
//              kStates                   flat buffers of state
//              update(p, state, g, f)    one element; state[0 .. kStates)
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <variant>

#include "comm/base/limits.h"
#include "worker/optim/elements.h"

namespace lockstep::cuda {

struct Sgd {
  using Factors = SgdFactors;
  static constexpr int kStates = 0;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float*, float g, const Factors& f) {
    sgd_element(p, g, f);
  }
};

struct SgdMomentum {
  using Factors = SgdFactors;
  static constexpr int kStates = 1;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    sgd_momentum_element(p, state[0], g, f);
  }
};

struct SgdNesterov {
  using Factors = SgdFactors;
  static constexpr int kStates = 1;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    sgd_nesterov_element(p, state[0], g, f);
  }
};

// adam and adamw: they differ in their factors.
struct Adam {
  using Factors = AdamFactors;
  static constexpr int kStates = 2;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    adam_element(p, state[0], state[1], g, f);
  }
};

struct Nadam {
  using Factors = NadamFactors;
  static constexpr int kStates = 2;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    nadam_element(p, state[0], state[1], g, f);
  }
};

template <bool Centered, bool Momentum>
struct Rmsprop {
  using Factors = RmspropFactors;
  static constexpr int kStates = 1 + Centered + Momentum;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    float* average = Centered ? state + 1 : nullptr;
    float* buffer = Momentum ? state + 1 + Centered : nullptr;
    rmsprop_element(p, state[0], average, buffer, g, f);
  }
};

struct Adagrad {
  using Factors = AdagradFactors;
  static constexpr int kStates = 1;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    adagrad_element(p, state[0], g, f);
  }
};

struct Adadelta {
  using Factors = AdadeltaFactors;
  static constexpr int kStates = 2;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    adadelta_element(p, state[0], state[1], g, f);
  }
};

inline constexpr int kMostStates = 3;  // of any rule

// What an update works on: flat buffers of one layout.
struct UpdateBuffers {
  float* params = nullptr;
  float* state[kMostStates] = {};
  const float* grads = nullptr;
};

// Four elements from `at`, a multiple of four: one wide load and store per buffer.
template <typename Rule>
LOCKSTEP_HOST_DEVICE void update_quad(const UpdateBuffers& buffers, uint64_t at,
                                      const typename Rule::Factors& factors) {
  struct alignas(16) Quad {
    float of[4];
  };
  const auto quad = [at](float* data) { return reinterpret_cast<Quad*>(data + at); };
  Quad p = *quad(buffers.params);
  const Quad g = *reinterpret_cast<const Quad*>(buffers.grads + at);
  Quad s[Rule::kStates + 1];
  for (int k = 0; k < Rule::kStates; ++k) s[k] = *quad(buffers.state[k]);
  for (uint32_t i = 0; i < 4; ++i) {
    float state[Rule::kStates + 1];
    for (int k = 0; k < Rule::kStates; ++k) state[k] = s[k].of[i];
    Rule::update(p.of[i], state, g.of[i], factors);
    for (int k = 0; k < Rule::kStates; ++k) s[k].of[i] = state[k];
  }
  *quad(buffers.params) = p;
  for (int k = 0; k < Rule::kStates; ++k) *quad(buffers.state[k]) = s[k];
}

// Factors by group; their grad_scale comes from the verdict.
template <typename Rule>
struct GroupFactors {
  typename Rule::Factors of[limits::kUpdateGroups];
};

// Of whichever rule a job has.
using UpdateFactors =
    std::variant<GroupFactors<Sgd>, GroupFactors<SgdMomentum>, GroupFactors<SgdNesterov>,
                 GroupFactors<Adam>, GroupFactors<Nadam>, GroupFactors<Rmsprop<false, false>>,
                 GroupFactors<Rmsprop<false, true>>, GroupFactors<Rmsprop<true, false>>,
                 GroupFactors<Rmsprop<true, true>>, GroupFactors<Adagrad>, GroupFactors<Adadelta>>;

}  // namespace lockstep::cuda
