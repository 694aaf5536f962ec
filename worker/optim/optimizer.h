// The job's optimizer over the flat parameter buffer. Its state lies in flat buffers of the same
// layout. An update is one pass. Padding (zero gradient, zero weight) stays zero.
//
// Settings may differ by range: the table of segments gives the group of each range.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "worker/optim/optimizer_row.h"
#include "worker/optim/optimizer_segment.h"

namespace lockstep {

// One flat buffer of state, `elements` floats, named as in PyTorch.
struct OptimizerState {
  std::string name;  // "exp_avg", "momentum_buffer", ...
  float* data = nullptr;
};

class Optimizer {
 public:
  // `elements`: the length of the flat buffers. The state starts as zeros. Errors as in
  // check_optimizer() (optimizers.h).
  static Result<std::unique_ptr<Optimizer>> create(const wire::OptimizerSpec& spec,
                                                   uint64_t elements);

  std::vector<OptimizerState> state() const { return state_; }

  void update(const OptimizerStep& step, std::span<const OptimizerSegment> segments,
              std::span<const OptimizerGroup> groups, float* params, const float* grads);

 private:
  static constexpr std::align_val_t kAlignment{64};  // bytes: a cache line, a vector register
  struct Free {
    void operator()(float* p) const { ::operator delete[](p, kAlignment); }
  };

  Optimizer(OptimizerRule rule, uint64_t elements);

  OptimizerRule rule_;
  std::vector<std::unique_ptr<float[], Free>> buffers_;
  std::vector<OptimizerState> state_;
};

}  // namespace lockstep
