// Teams of device threads (team.h): a warp, or a whole block. They add in the same lanes and the
// same tree as SerialTeam.
//
// REQUIRES: all threads of the team call fold(), held_fold() and sum() together.
#pragma once

#include <cstdint>
#include <cstring>

#include "worker/cuda/kernels/team.h"

namespace lockstep::cuda {

inline constexpr uint32_t kAllLanes = 0xffffffff;

template <typename State>
__device__ __forceinline__ State shuffle_xor(const State& state, uint32_t mask) {
  constexpr uint32_t kWords = sizeof(State) / sizeof(uint32_t);
  static_assert(sizeof(State) % sizeof(uint32_t) == 0);
  uint32_t words[kWords];
  memcpy(words, &state, sizeof state);
#pragma unroll
  for (uint32_t i = 0; i < kWords; ++i) words[i] = __shfl_xor_sync(kAllLanes, words[i], mask);
  State other;
  memcpy(&other, words, sizeof other);
  return other;
}

// Butterfly over `Count` lanes: every lane gets the same bits, because combine(a, b) ==
// combine(b, a).
template <uint32_t Count, typename State, typename Combine>
__device__ __forceinline__ State combine_lanes(State state, const Combine& combine) {
#pragma unroll
  for (uint32_t half = Count / 2; half > 0; half /= 2)
    state = combine(state, shuffle_xor(state, half));
  return state;
}

template <typename Self, uint32_t Lanes>
class DeviceTeam {
 public:
  static constexpr uint32_t kLanes = Lanes;

  // One lane's.
  template <typename X, uint32_t Each>
  struct Held {
    X of[Each] = {};
  };

  template <typename Body>
  __device__ __forceinline__ void lane_loop(uint32_t n, const Body& body) const {
    for (uint32_t i = lane(); i < n; i += Lanes) body(i);
  }

  // Unrolled, so that several loads are under way.
  template <typename State, typename Step, typename Combine>
  __device__ __forceinline__ State fold(uint32_t n, const State& zero, const Step& step,
                                        const Combine& combine) const {
    State mine = zero;
#pragma unroll 4
    for (uint32_t i = lane(); i < n; i += Lanes) step(mine, i);
    return static_cast<const Self*>(this)->combine(mine, combine);
  }

  template <typename Value>
  __device__ __forceinline__ float sum(uint32_t n, const Value& value) const {
    return fold(
        n, 0.0f, [&](float& mine, uint32_t i) { mine += value(i); },
        [](float a, float b) { return a + b; });
  }

  template <uint32_t Each, typename Body>
  __device__ __forceinline__ void held_loop(uint32_t n, const Body& body) const {
#pragma unroll
    for (uint32_t k = 0; k < Each; ++k) {
      const uint32_t g = k * Lanes + lane();
      if (g < n) body(k, g);
    }
  }

  template <uint32_t Each, typename State, typename Step, typename Combine>
  __device__ __forceinline__ State held_fold(uint32_t n, const State& zero, const Step& step,
                                             const Combine& combine) const {
    State mine = zero;
    held_loop<Each>(n, [&](uint32_t k, uint32_t g) { step(mine, k, g); });
    return static_cast<const Self*>(this)->combine(mine, combine);
  }

  template <typename Body>
  __device__ __forceinline__ void once(const Body& body) const {
    if (lane() == 0) body();
  }

 protected:
  __device__ __forceinline__ uint32_t lane() const {
    return threadIdx.x % Lanes;
  }
};

class WarpTeam : public DeviceTeam<WarpTeam, kWarp> {
 public:
  template <typename State, typename Combine>
  __device__ __forceinline__ State combine(const State& mine, const Combine& combine_two) const {
    return combine_lanes<kWarp>(mine, combine_two);
  }
};

// `Threads`: the threads of the block. `Scratch`: the largest state in bytes.
template <uint32_t Threads, uint32_t Scratch>
class BlockTeam : public DeviceTeam<BlockTeam<Threads, Scratch>, Threads> {
 public:
  static constexpr uint32_t kWarps = Threads / kWarp;
  static_assert(kWarps <= kWarp && (kWarps & (kWarps - 1)) == 0);

  struct alignas(16) Memory {
    unsigned char of[kWarps * Scratch];
  };

  // `memory`: shared.
  __device__ explicit BlockTeam(Memory& memory) : memory_(memory) {}

  template <typename State, typename Combine>
  __device__ __forceinline__ State combine(const State& mine, const Combine& combine_two) const {
    static_assert(sizeof(State) <= Scratch);
    State* warps = reinterpret_cast<State*>(memory_.of);
    const State of_warp = combine_lanes<kWarp>(mine, combine_two);
    if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = of_warp;
    __syncthreads();
    const State all = combine_lanes<kWarps>(warps[threadIdx.x % kWarps], combine_two);
    __syncthreads();  // before any thread writes the memory again
    return all;
  }

 private:
  Memory& memory_;
};

}  // namespace lockstep::cuda
