// A boundary state in memory of its own, which came from a file or from a peer, before an engine
// installs it.
//
// It takes memory tensor by tensor and does not fill it, so that a table of sizes alone, which a
// stranger may have written, makes no page resident.
//
// Thread-safety: a value; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {

class HeldState {
 public:
  // One more tensor, and where its bytes go. kBadData if the shape has no size in bytes.
  // kNoMemory if there is no memory for it.
  Result<std::span<std::byte>> add(StateSection section, std::string name, DType dtype,
                                   std::vector<int64_t> shape);

  // In the order of add(). Valid while this object lives, also after it was moved.
  std::span<const StateTensor> tensors() const { return tensors_; }
  uint64_t bytes() const;

 private:
  std::vector<StateTensor> tensors_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

// Copies `from` into the memory of `into`, tensor by tensor of the same name. Parameters and
// buffers have their names together, the optimizer's tensors theirs. The order does not matter.
//
// kBadData, and nothing is copied, if a tensor is missing, left over, given twice or of another
// dtype or shape; the message names it. `from` may be `into` itself.
Status install_tensors(std::span<const StateTensor> from, std::span<const StateTensor> into);

}  // namespace lockstep
