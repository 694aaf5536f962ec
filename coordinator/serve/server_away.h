// Who may be on the way back to a coordinator whose run is over: they must hear how it ended, or
// they wait for it in vain.
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
  // `all_back_ms`: until then a worker or an agent may not have found a new coordinator yet.
  explicit Away(int64_t all_back_ms) : all_back_ms_(all_back_ms) {}

  // Before `event` is decided upon. Once the run is over, who goes does so for good.
  void note(const Event& event, const State& state, bool is_over);
  bool is_anybody(int64_t now_ms) const { return !agents_.empty() || now_ms < all_back_ms_; }

 private:
  int64_t all_back_ms_;
  std::set<std::string> agents_;  // nodes whose agent has lost its connection
};

}  // namespace lockstep::coordinator
