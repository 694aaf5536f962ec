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

namespace lockstep {

// Elements [start, start + length) of the flat buffers.
struct OptimizerSegment {
  uint64_t start = 0;
  uint64_t length = 0;
  uint32_t group = 0;
};

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

class Optimizer {
 public:
  // `elements` is the length of the flat buffers; state starts as zeros. kUsage for an unknown name
  // (the nearest is named) and for values that make no sense.
  static Result<std::unique_ptr<Optimizer>> create(const wire::OptimizerSpec& spec,
                                                   uint64_t elements);
  virtual ~Optimizer() = default;

  virtual std::vector<OptimizerState> state() = 0;

  // Step `step` (0-based; bias corrections depend on it) with learning rate `lr`.
  virtual void update(Step step, double lr, std::span<const OptimizerSegment> segments,
                      std::span<const OptimizerGroup> groups, float* params,
                      const float* grads) = 0;
};

}  // namespace lockstep
