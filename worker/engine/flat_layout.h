// Where each tensor lies in the flat buffers (parameters, gradients, optimizer state: one layout).
//
// Tensors lie in reverse order of registration, because backward finishes the last layer first: so
// the first bucket is ready first. Each starts at a multiple of kCutElements floats and is padded
// with zeros up to the next (DESIGN, section 3).
//
//   [fc3.bias][fc3.weight][fc2.bias] ... [fc1.weight] | [bn1.running_mean] ... | loss, correct,
//   votes gradients                                         | statistics             | control
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collectives/collective.h"
#include "worker/model/spec.h"

namespace lockstep {

// Elements of the control section, summed over all partials.
enum ControlElement : uint32_t {
  kControlLoss = 0,       // sum of the slot's losses / true samples of the step
  kControlCorrect = 1,    // right predictions
  kControlStopVotes = 2,  // one per rank that wants to stop
};

struct FlatTensor {
  uint64_t begin = 0;
  uint64_t elements = 0;
  uint64_t end() const { return begin + elements; }  // without padding
};

struct FlatLayout {
  std::vector<FlatTensor> parameters;  // by parameter index
  std::vector<FlatTensor> statistics;  // by buffer index
  BufferLayout buffer;

  // Starts of the parameters' tensors and the end of the last, ascending: where buckets may be cut.
  std::vector<uint64_t> tensor_bounds() const;
};

FlatLayout make_flat_layout(const ModelLayout& model);

}  // namespace lockstep
