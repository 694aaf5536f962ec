// Where each tensor lies in the flat buffers (parameters, gradients, optimizer state: one layout).
//
// Tensors lie in reverse order of registration: backward finishes the last layer first, so the
// first bucket is ready first. Each tensor starts at a multiple of kCutElements floats. Zeros pad
// it up to the next multiple (comm/collectives/collective.h).
//
//   [fc3.bias][fc3.weight] ... [fc1.weight] | [bn1.running_mean] ... | loss, votes, digests
//   gradients                               | statistics             | control
//
// Frozen parameters (optimizer.groups) have no gradient and no optimizer state. They lie after the
// others, in the buffer of parameters alone:
//
//   [fc3.bias][fc3.weight] | [conv1.weight] ...
//   gradients              | frozen
//
// Digests: a hash of what the loader delivered to each slot. A digest takes four floats, and each
// float holds 16 bits exactly. A slot's region holds its own digest, and zeros for all other slots.
// So the sum over all slots gives every rank the digest of every slot.
//
// An engine may have elements of its own after the digests; they are summed like the rest.
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
  kControlLoss = 0,         // sum of the slot's losses / true samples of the step
  kControlCorrect = 1,      // right predictions
  kControlStopVotes = 2,    // one per rank that wants to stop
  kControlSwitchVotes = 3,  // one per rank that knows of the planned change
  kControlWeight = 4,       // sum of the slot's weights / true samples of the step; if it has any
  kControlMetrics = 5,      // kMostMetrics: sum over the slot's samples / true samples of the step
  kControlDigests = 16,     // kDigestElements a slot
};
inline constexpr uint32_t kDigestElements = 4;
static_assert(kControlMetrics + kMostMetrics == kControlDigests);

struct FlatTensor {
  uint64_t begin = 0;
  uint64_t elements = 0;
  uint64_t end() const { return begin + elements; }  // without padding
};

struct FlatLayout {
  std::vector<FlatTensor> parameters;  // by parameter index; in the buffer of parameters
  std::vector<FlatTensor> statistics;  // by buffer index
  BufferLayout buffer;
  std::vector<bool> frozen;         // by parameter index; empty: none is
  uint64_t parameter_elements = 0;  // of the buffer of parameters: gradients and frozen

  bool is_trained(size_t parameter) const { return frozen.empty() || !frozen[parameter]; }

  uint64_t statistics_elements() const { return buffer.statistics - buffer.gradients; }
  uint64_t control_elements() const { return buffer.elements - buffer.statistics; }

  // Starts of the trained parameters and the end of the last, ascending: where buckets may be cut.
  std::vector<uint64_t> tensor_bounds() const;
};

// `slots` of the run. `frozen` as in FlatLayout. `own`: elements after the digests.
FlatLayout make_flat_layout(const ModelLayout& model, uint32_t slots, std::vector<bool> frozen = {},
                            uint64_t own = 0);

// Where those elements begin in a control section.
inline uint64_t own_control(uint32_t slots) {
  return kControlDigests + uint64_t{kDigestElements} * slots;
}

// A slot's digest in a control section.
void put_digest(float* control, uint32_t slot, uint64_t digest);
uint64_t get_digest(const float* control, uint32_t slot);

}  // namespace lockstep
