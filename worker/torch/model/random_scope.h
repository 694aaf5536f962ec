// LibTorch's default generators for the CPU and for the device of a forward, lent to one forward at
// a time.
//
// Operators such as dropout draw from these generators, which belong to the process. Inside a scope
// they start from the key alone, so forward draws the same values wherever and whenever it runs.
// The lock keeps out the forwards of other engines in this process.
//
// Thread-safety: a scope belongs to one thread; scopes of other threads wait for each other.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <mutex>

namespace lockstep {

class RandomScope {
 public:
  // `where`: of the forward's input. A script may draw on the CPU as well.
  RandomScope(uint64_t key, at::Device where);

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace lockstep
