#include "worker/optim/update_range.h"

#include "comm/base/target_clones.h"

// Clang cannot clone templates. Only tests and sanitizers build with it.
#if defined(__clang__)
#define LOCKSTEP_RULE_CLONES
#else
#define LOCKSTEP_RULE_CLONES LOCKSTEP_CLONES
#endif

namespace lockstep {
namespace {

// The states come one by one: only parameters can be __restrict.
template <typename Rule, bool kKeepsZeros>
LOCKSTEP_RULE_CLONES void update_each(float* __restrict p, float* __restrict first,
                                      float* __restrict second, float* __restrict third,
                                      const float* __restrict g, uint64_t n,
                                      typename Rule::Factors f) {
  static_assert(Rule::kStates <= kMostStates);
  for (uint64_t i = 0; i < n; ++i) {
    float state[Rule::kStates + 1];
    if constexpr (Rule::kStates > 0) state[0] = first[i];
    if constexpr (Rule::kStates > 1) state[1] = second[i];
    if constexpr (Rule::kStates > 2) state[2] = third[i];
    const bool stays = kKeepsZeros && p[i] == 0;
    Rule::update(p[i], state, g[i], f);
    if (stays) p[i] = 0;
    if constexpr (Rule::kStates > 0) first[i] = state[0];
    if constexpr (Rule::kStates > 1) second[i] = state[1];
    if constexpr (Rule::kStates > 2) third[i] = state[2];
  }
}

}  // namespace

void update_range(const UpdateFactors& factors, const UpdateBuffers& buffers,
                  const OptimizerSegment& segment, bool keeps_zeros) {
  const uint64_t start = segment.start;
  const auto state = [&](int k) {
    return buffers.state[k] == nullptr ? nullptr : buffers.state[k] + start;
  };
  std::visit(
      [&]<typename Rule>(const GroupFactors<Rule>& of) {
        const auto update = keeps_zeros ? update_each<Rule, true> : update_each<Rule, false>;
        update(buffers.params + start, state(0), state(1), state(2), buffers.grads + start,
               segment.length, of.of[segment.group]);
      },
      factors);
}

}  // namespace lockstep
