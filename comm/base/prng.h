// Counter-based random numbers. A value is a pure function of a key, so it does not depend on
// threads, ranks or history. Keys are hashed field by field, never added, so (seed 1, epoch 2) and
// (seed 2, epoch 1) have nothing in common.
//
// Source: the finalizer is splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014).
#pragma once

#include <cstdint>
#include <initializer_list>

namespace lockstep {

// The purpose of a stream. It is part of the key, so that no two uses share numbers.
enum class StreamKind : uint64_t { kInit = 1, kDropout = 2, kAugment = 3, kOrder = 4 };

constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The key of a stream from its fields. The order of fields matters.
constexpr uint64_t stream_key(std::initializer_list<uint64_t> fields) {
  uint64_t h = 0x6c6f636b73746570ULL;  // "lockstep"
  for (uint64_t field : fields) h = mix64(h ^ mix64(field));
  return h;
}

// The i-th number of a stream.
constexpr uint64_t stream_value(uint64_t key, uint64_t i) {
  return mix64(key ^ mix64(i));
}

// Folds both halves of a key into 32 bits: PyTorch's CPU generator uses only these of a seed.
constexpr uint32_t fold32(uint64_t key) {
  return static_cast<uint32_t>(key) ^ static_cast<uint32_t>(key >> 32);
}

// A sequential generator for tests and jitter, whose callers control the order.
class Prng {
 public:
  explicit constexpr Prng(uint64_t seed) : state_(seed) {}
  constexpr uint64_t next() { return mix64(state_++); }
  // Uniform in [0, bound); bound > 0. The bias is below 2^-32 for bounds below 2^32.
  constexpr uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace lockstep
