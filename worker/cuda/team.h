// Threads that work on one row together, and how they add. Lane l takes elements l, l + kLanes, ...
// The sums of the lanes are added in a fixed tree (upper half onto lower half, until one is left).
// So the bits depend only on the row, never on the machine.
//
// A row function is a template over its team. On the device a team is a warp or a block
// (device_team.cuh). SerialTeam, here, does the same additions in the same order in one thread. So
// a test on the CPU sees what the kernel computes, except for the device's own exp, log and tanh.
//
// A team has:  kLanes
//              lane_loop(n, body)     body(i) for every i < n, split among the lanes
//              sum(n, value)          sum of value(i), the same on every lane
//              max(n, value)          largest value(i), the same on every lane; -infinity for n = 0
//              once(body)             body() in one lane
//
// Thread-safety: values.
#pragma once

#include <cmath>
#include <cstdint>

// Stands before a function that takes a team. nvcc compiles such a function for the device only,
// because the host cannot use a device's team.
#if defined(__CUDACC__)
#define LOCKSTEP_TEAM_CODE __device__ __forceinline__
#else
#define LOCKSTEP_TEAM_CODE inline
#endif

namespace lockstep::cuda {

template <uint32_t Lanes>
class SerialTeam {
 public:
  static constexpr uint32_t kLanes = Lanes;

  template <typename Body>
  void lane_loop(uint32_t n, const Body& body) const {
    for (uint32_t i = 0; i < n; ++i) body(i);
  }

  template <typename Value>
  float sum(uint32_t n, const Value& value) const {
    float lanes[Lanes] = {};
    for (uint32_t i = 0; i < n; ++i) lanes[i % Lanes] += value(i);
    for (uint32_t half = Lanes / 2; half > 0; half /= 2) {
      for (uint32_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    return lanes[0];
  }

  template <typename Value>
  float max(uint32_t n, const Value& value) const {
    float largest = -INFINITY;
    for (uint32_t i = 0; i < n; ++i) {
      const float x = value(i);
      largest = x > largest ? x : largest;
    }
    return largest;
  }

  template <typename Body>
  void once(const Body& body) const {
    body();
  }
};

}  // namespace lockstep::cuda
