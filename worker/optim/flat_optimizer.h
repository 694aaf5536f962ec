// An optimizer as a rule that knows its factors and its pass, over state in flat buffers.
// Internal to the optimizers.
//
// A Rule has:  std::vector<std::string> state_names() const;
//              Factors factors(const OptimizerStep&, const OptimizerGroup&);
//              void pass(float* params, float* const* state, const float* grads, uint64_t n,
//                        const Factors&) const;     state: by state_names()
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "worker/optim/optimizer.h"

namespace lockstep {

inline constexpr std::align_val_t kFlatAlignment{64};  // bytes: a cache line, a vector register

struct FreeFlatFloats {
  void operator()(float* p) const { ::operator delete[](p, kFlatAlignment); }
};
using FlatFloats = std::unique_ptr<float[], FreeFlatFloats>;

inline FlatFloats make_flat_zeros(uint64_t elements) {
  auto* p = static_cast<float*>(::operator new[](elements * sizeof(float), kFlatAlignment));
  std::memset(p, 0, elements * sizeof(float));
  return FlatFloats(p);
}

template <typename Rule>
class FlatOptimizer final : public Optimizer {
 public:
  FlatOptimizer(Rule rule, uint64_t elements) : rule_(std::move(rule)) {
    for (const std::string& name : rule_.state_names()) {
      buffers_.push_back(make_flat_zeros(elements));
      state_.push_back({name, buffers_.back().get()});
    }
  }

  std::vector<OptimizerState> state() override { return state_; }

  void update(const OptimizerStep& step, std::span<const OptimizerSegment> segments,
              std::span<const OptimizerGroup> groups, float* params, const float* grads) override {
    std::vector<float*> state(state_.size());
    for (const OptimizerSegment& segment : segments) {
      for (size_t i = 0; i < state.size(); ++i) state[i] = state_[i].data + segment.start;
      rule_.pass(params + segment.start, state.data(), grads + segment.start, segment.length,
                 rule_.factors(step, groups[segment.group]));
    }
  }

 private:
  Rule rule_;
  std::vector<FlatFloats> buffers_;
  std::vector<OptimizerState> state_;
};

}  // namespace lockstep
