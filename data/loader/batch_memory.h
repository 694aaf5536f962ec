// Memory for a few batches, allocated at once.
//
// Thread-safety: immutable, except the batches themselves, whose owner orders their use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "comm/base/status.h"

namespace lockstep::data {

class BatchMemory {
 public:
  static constexpr uint64_t kAlignment = 64;  // a cache line, and the widest vector

  BatchMemory() = default;  // for no batch
  // kConfig if `batches` of so many samples do not fit into this machine.
  static Result<BatchMemory> make(uint64_t batches, uint64_t samples, uint64_t input_bytes,
                                  uint64_t labels_bytes);

  uint64_t batch_bytes() const { return batch_bytes_; }

  // Batch i: samples * input_bytes, then samples * labels_bytes; both aligned.
  std::byte* inputs(uint64_t i) const { return memory_.get() + i * batch_bytes_; }
  int64_t* labels(uint64_t i) const {
    return reinterpret_cast<int64_t*>(inputs(i) + inputs_bytes_);
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  uint64_t batch_bytes_ = 0;
  uint64_t inputs_bytes_ = 0;
};

}  // namespace lockstep::data
