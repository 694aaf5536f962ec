// LibTorch's default generator for the CPU, lent to one forward at a time.
//
// Operators such as dropout draw from that generator, which belongs to the process. Inside a scope
// it starts from the key alone, so what forward draws is the same wherever and whenever it runs;
// the lock keeps forwards of other engines of this process out.
//
// Thread-safety: a scope belongs to one thread; scopes of other threads wait for each other.
#pragma once

#include <cstdint>
#include <mutex>

namespace lockstep {

class RandomScope {
 public:
  explicit RandomScope(uint64_t key);

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace lockstep
