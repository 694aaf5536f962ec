// What happened in a simulation, counted: for scenarios, whose history has one right outcome.
//
// Thread-safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/sim/world/world.h"

namespace lockstep::sim {

struct Seen {
  uint32_t terms = 0;
  uint32_t rollbacks = 0;
  uint32_t generations = 0;     // that were started
  uint32_t rebalances = 0;      // of them those with the same members and other slots
  uint32_t evictions = 0;       // processes that came back as somebody else
  uint32_t kills = 0;           // that agents were asked for
  std::set<std::string> named;  // places that a check for corruption has put out
  uint32_t skips = 0;
  std::set<std::string> members;  // processes that were a member
};

// Fills `seen`, which outlives it.
std::unique_ptr<Check> make_watch(Seen& seen);

}  // namespace lockstep::sim
