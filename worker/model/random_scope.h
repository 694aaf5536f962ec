// LibTorch's default generator for the CPU, lent to one forward at a time.
//
// Operators such as dropout draw from this generator, which belongs to the process. Inside a scope
// the generator starts from the key alone, so forward draws the same values wherever and whenever
// it runs. The lock keeps out the forwards of other engines in this process.
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
