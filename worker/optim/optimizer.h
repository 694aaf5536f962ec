// Optimizers over the flat parameter buffer: state lies in flat buffers of the same layout, an
// update is one pass, and padding (zero gradient, zero weight) stays zero.
//
// Settings may differ by range: the table of segments says which group a range belongs to.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "worker/optim/optimizer_segment.h"

namespace lockstep {

// What a group changes in the settings of the job.
struct OptimizerGroup {
  double lr_scale = 1;
  double weight_decay_scale = 1;
};

// One flat buffer of state, `elements` floats, named as in PyTorch.
struct OptimizerState {
  std::string name;  // "exp_avg", "momentum_buffer", ...
  float* data = nullptr;
};

// What one update is made with.
struct OptimizerStep {
  Step step = 0;  // 0-based; bias corrections depend on it
  double lr = 0;
  float grad_scale = 1;  // multiplies every gradient first; 1 changes no bit
};

class Optimizer {
 public:
  // `elements` is the length of the flat buffers; state starts as zeros. kUsage for an unknown name
  // (the nearest is named), for values that make no sense, and for LBFGS, which would move the
  // parameters while it evaluates them.
  static Result<std::unique_ptr<Optimizer>> create(const wire::OptimizerSpec& spec,
                                                   uint64_t elements);
  virtual ~Optimizer() = default;

  virtual std::vector<OptimizerState> state() = 0;

  virtual void update(const OptimizerStep& step, std::span<const OptimizerSegment> segments,
                      std::span<const OptimizerGroup> groups, float* params,
                      const float* grads) = 0;
};

}  // namespace lockstep
