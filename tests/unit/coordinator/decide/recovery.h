// The beginning of tests of recovery.
#pragma once

#include <vector>

#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {

inline std::vector<uint64_t> sources(const World& w) {
  const auto& members = w.started().source().members();
  return {members.begin(), members.end()};
}

// Three workers, `steps` reported by all.
inline void train_three(World& w, Step steps) {
  w.train();
  for (ConnectionId c = 1; c <= 3 && steps > 0; ++c) w.report(c, 1, 0, steps);
}

}  // namespace lockstep::coordinator
