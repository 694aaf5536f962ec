// Threads that work on one row together, and how they add. Lane l takes elements (or groups,
// groups.h) l, l + kLanes, ... in order. Then the lanes of each warp of 32 are combined in a fixed
// tree (upper half onto lower half, until one is left), and then the warps in such a tree. So the
// bits depend only on the row, never on the machine.
//
// A row function is a template over its team. On the device a team is a warp or a block
// (device_team.cuh). SerialTeam, here, does the same additions in the same order in one thread. So
// a test on the CPU sees the kernel's results, except for the device's own exp and log.
//
// A team has:  kLanes
//              lane_loop(n, body)     body(i) for every i < n, split among the lanes
//              fold(n, zero, step, combine)
//                                     each lane folds its i < n with step(state, i), from `zero`;
//                                     then combine(a, b) joins the lanes. The result is the same on
//                                     every lane. combine(a, b) == combine(b, a), bit for bit.
//              sum(n, value)          sum of value(i), the same on every lane
//              once(body)             body() in one lane
//
// and for rows that its lanes hold, up to `Each` groups a lane:
//              Held<X, Each>          .of[k]: an X for the k-th group of a lane
//              held_loop<Each>(n, body)
//                                     body(k, g) for every group g < n
//              held_fold<Each>(n, zero, step, combine)
//                                     fold() with step(state, k, g)
//
// Thread-safety: values.
#pragma once

#include <cstdint>

// Stands before a function that takes a team. nvcc compiles such a function for the device only,
// because the host cannot use a device's team.
#if defined(__CUDACC__)
#define LOCKSTEP_TEAM_CODE __device__ __forceinline__
#else
#define LOCKSTEP_TEAM_CODE inline
#endif

namespace lockstep::cuda {

inline constexpr uint32_t kWarp = 32;  // lanes

template <uint32_t Lanes>
class SerialTeam {
 public:
  static constexpr uint32_t kLanes = Lanes;
  static_assert(Lanes % kWarp == 0);

  // All lanes' in one: k is the group.
  template <typename X, uint32_t Each>
  struct Held {
    X of[Each * Lanes] = {};
  };

  template <typename Body>
  void lane_loop(uint32_t n, const Body& body) const {
    for (uint32_t i = 0; i < n; ++i) body(i);
  }

  template <typename State, typename Step, typename Combine>
  State fold(uint32_t n, const State& zero, const Step& step, const Combine& combine) const {
    State lanes[Lanes];
    for (State& lane : lanes) lane = zero;
    for (uint32_t i = 0; i < n; ++i) step(lanes[i % Lanes], i);
    State warps[Lanes / kWarp];
    for (uint32_t warp = 0; warp < Lanes / kWarp; ++warp)
      warps[warp] = combined<kWarp>(lanes + warp * kWarp, combine);
    return combined<Lanes / kWarp>(warps, combine);
  }

  template <typename Value>
  float sum(uint32_t n, const Value& value) const {
    return fold(
        n, 0.0f, [&](float& lane, uint32_t i) { lane += value(i); },
        [](float a, float b) { return a + b; });
  }

  template <uint32_t Each, typename Body>
  void held_loop(uint32_t n, const Body& body) const {
    for (uint32_t g = 0; g < n; ++g) body(g, g);
  }

  template <uint32_t Each, typename State, typename Step, typename Combine>
  State held_fold(uint32_t n, const State& zero, const Step& step, const Combine& combine) const {
    return fold(
        n, zero, [&](State& lane, uint32_t g) { step(lane, g, g); }, combine);
  }

  template <typename Body>
  void once(const Body& body) const {
    body();
  }

 private:
  template <uint32_t Count, typename State, typename Combine>
  static State combined(State* states, const Combine& combine) {
    for (uint32_t half = Count / 2; half > 0; half /= 2) {
      for (uint32_t i = 0; i < half; ++i) states[i] = combine(states[i], states[i + half]);
    }
    return states[0];
  }
};

}  // namespace lockstep::cuda
