// Tracks peers that may be reconnecting when the run is over. They must hear how it ended, or they
// wait in vain.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "coordinator/state/event.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

class Away {
 public:
  // `all_back_ms`: until then workers and agents may still look for a new coordinator.
  explicit Away(int64_t all_back_ms) : all_back_ms_(all_back_ms) {}

  // Call it before decide() judges `event`. Once the run is over, a peer that goes does not return.
  void note(const Event& event, const State& state, bool is_over);
  bool is_anybody(int64_t now_ms) const { return !agents_.empty() || now_ms < all_back_ms_; }

 private:
  int64_t all_back_ms_;
  std::set<std::string> agents_;  // nodes whose agent has lost its connection
};

}  // namespace lockstep::coordinator
