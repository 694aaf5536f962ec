// A few aligned buffers for reads around the page cache, allocated when they are first needed.
//
// Thread-safety: none of its own.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "comm/base/limits.h"

namespace lockstep::data {

class BounceBuffers {
 public:
  static constexpr uint64_t kAlignment = 4'096;  // of places, lengths and memory
  static constexpr uint64_t kBytes = limits::kBounceBytes;
  static_assert(kBytes % kAlignment == 0);

  // Null when all are taken, or there is no memory.
  uint8_t* take() {
    if (free_.empty() && all_.size() < limits::kBounceBuffers) {
      auto* memory = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
      if (memory == nullptr) return nullptr;
      all_.emplace_back(memory);
      free_.push_back(memory);
    }
    if (free_.empty()) return nullptr;
    uint8_t* buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give_back(uint8_t* buffer) { free_.push_back(buffer); }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<uint8_t, Free>> all_;
  std::vector<uint8_t*> free_;
};

}  // namespace lockstep::data
