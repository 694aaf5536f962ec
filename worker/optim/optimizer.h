// The job's optimizer over the flat parameter buffer. Its state lies in flat buffers of the same
// layout. An update is one pass. Padding (zero gradient, zero weight) stays zero.
//
// Settings may differ by range: the table of segments gives the group of each range.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/optim/optimizer_row.h"
#include "worker/optim/optimizer_segment.h"
#include "worker/optim/zero_pages.h"

namespace lockstep {

// One flat buffer of state, `elements` floats, named as in PyTorch.
struct OptimizerState {
  std::string name;  // "exp_avg", "momentum_buffer", ...
  float* data = nullptr;
};

class Optimizer {
 public:
  // `elements`: the length of the flat buffers. The state starts as zeros, and takes memory where
  // it is written. Errors as in check_optimizer() (optimizers.h).
  static Result<std::unique_ptr<Optimizer>> create(const wire::OptimizerSpec& spec,
                                                   uint64_t elements);

  std::vector<OptimizerState> state() const { return state_; }

  void update(const OptimizerStep& step, std::span<const OptimizerSegment> segments,
              std::span<const OptimizerGroup> groups, float* params, const float* grads);

 private:
  Optimizer(OptimizerRule rule, uint64_t elements);

  OptimizerRule rule_;
  std::vector<ZeroPages> buffers_;
  std::vector<OptimizerState> state_;
};

}  // namespace lockstep
