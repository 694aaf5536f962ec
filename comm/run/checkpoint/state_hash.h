// A quick hash of a boundary state. Members compare it, and the writer of a checkpoint compares its
// copy with it before it writes the copy. It proves nothing against an attacker; weights_hash.h
// does.
//
// Thread-safety: a CheckHash belongs to one thread; hash_of() is a pure function.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>

#include "comm/base/hash.h"
#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {

// The hash of bytes that come in pieces: the first half of their XXH3-128.
class CheckHash {
 public:
  void update(const void* data, size_t bytes) { hash_.update(data, bytes); }
  uint64_t value() const { return std::strtoull(hash_.hex().substr(0, 16).c_str(), nullptr, 16); }

 private:
  Xxh3 hash_;
};

// Hash of the bytes of all tensors, in order.
uint64_t hash_of(std::span<const StateTensor> state);

}  // namespace lockstep
