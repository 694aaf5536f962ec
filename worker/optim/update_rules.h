// The rules of all optimizers, and the inputs of an update on host and device alike.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <variant>

#include "comm/base/limits.h"
#include "worker/optim/optimizer_list.h"

namespace lockstep {

inline constexpr int kMostStates = 3;  // of any rule

// The flat buffers of an update, all with one layout.
struct UpdateBuffers {
  float* params = nullptr;
  float* state[kMostStates] = {};
  const float* grads = nullptr;
};

// Updates four elements from `at`, a multiple of four: one wide load and store per buffer. With
// `keeps_zeros` a parameter that is zero stays so; its states go on.
template <typename Rule>
LOCKSTEP_HOST_DEVICE void update_quad(const UpdateBuffers& buffers, uint64_t at,
                                      const typename Rule::Factors& factors, bool keeps_zeros) {
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
    const bool stays = keeps_zeros && p.of[i] == 0;
    Rule::update(p.of[i], state, g.of[i], factors);
    if (stays) p.of[i] = 0;
    for (int k = 0; k < Rule::kStates; ++k) s[k].of[i] = state[k];
  }
  *quad(buffers.params) = p;
  for (int k = 0; k < Rule::kStates; ++k) *quad(buffers.state[k]) = s[k];
}

// Factors by group. A GPU takes the grad_scale from the verdict instead.
template <typename Rule>
struct GroupFactors {
  typename Rule::Factors of[limits::kUpdateGroups];
};

template <typename List>
struct FactorsOfList;
template <typename... Rules>
struct FactorsOfList<RuleList<Rules...>> {
  using Type = std::variant<GroupFactors<Rules>...>;
};

// The factors of the job's rule.
using UpdateFactors = FactorsOfList<AllRules>::Type;

}  // namespace lockstep
