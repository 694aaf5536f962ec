// Teams of device threads (team.h): a warp, or a whole block. They add in the same lanes and the
// same tree as SerialTeam.
//
// REQUIRES: all threads of the team call sum() and max() together.
#pragma once

#include <cmath>
#include <cstdint>

namespace lockstep::cuda {

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kAllLanes = 0xffffffff;

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// The same comparison as SerialTeam's. fmaxf would differ: it prefers a number to a NaN.
struct Larger {
  __device__ float operator()(float a, float b) const { return b > a ? b : a; }
};

// Butterfly: every lane gets the same bits, because a + b == b + a.
template <typename Combine>
__device__ float combine_warp(float value, Combine combine) {
  for (uint32_t half = kWarp / 2; half > 0; half /= 2)
    value = combine(value, __shfl_xor_sync(kAllLanes, value, half));
  return value;
}

template <typename Self, uint32_t Lanes>
class DeviceTeam {
 public:
  static constexpr uint32_t kLanes = Lanes;

  template <typename Body>
  __device__ void lane_loop(uint32_t n, const Body& body) const {
    for (uint32_t i = lane(); i < n; i += Lanes) body(i);
  }

  template <typename Value>
  __device__ float sum(uint32_t n, const Value& value) const {
    float mine = 0;
    for (uint32_t i = lane(); i < n; i += Lanes) mine += value(i);
    return static_cast<const Self*>(this)->combine(mine, Add{});
  }

  template <typename Value>
  __device__ float max(uint32_t n, const Value& value) const {
    float mine = -INFINITY;
    for (uint32_t i = lane(); i < n; i += Lanes) mine = Larger{}(mine, value(i));
    return static_cast<const Self*>(this)->combine(mine, Larger{});
  }

  template <typename Body>
  __device__ void once(const Body& body) const {
    if (lane() == 0) body();
  }

 protected:
  __device__ uint32_t lane() const { return threadIdx.x % Lanes; }
};

class WarpTeam : public DeviceTeam<WarpTeam, kWarp> {
 public:
  template <typename Combine>
  __device__ float combine(float mine, Combine combine_two) const {
    return combine_warp(mine, combine_two);
  }
};

// `Threads`: the threads of the block. `lanes`: shared memory for `Threads` floats.
template <uint32_t Threads>
class BlockTeam : public DeviceTeam<BlockTeam<Threads>, Threads> {
 public:
  __device__ explicit BlockTeam(float* lanes) : lanes_(lanes) {}

  template <typename Combine>
  __device__ float combine(float mine, Combine combine_two) const {
    const uint32_t lane = this->lane();
    lanes_[lane] = mine;
    __syncthreads();
    for (uint32_t half = Threads / 2; half >= kWarp; half /= 2) {
      if (lane < half) lanes_[lane] = combine_two(lanes_[lane], lanes_[lane + half]);
      __syncthreads();
    }
    const float all = combine_warp(lanes_[lane % kWarp], combine_two);
    __syncthreads();  // before any thread writes the lanes again
    return all;
  }

 private:
  float* lanes_;
};

}  // namespace lockstep::cuda
