// Counts the events of a simulation, for scenarios whose history has one right outcome.
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
  uint32_t generations = 0;     // started generations
  uint32_t rebalances = 0;      // of these, those with the same members and other slots
  uint32_t evictions = 0;       // processes that came back with another identity
  uint32_t kills = 0;           // kills that agents were asked for
  std::set<std::string> named;  // places that a check for corruption has evicted
  uint32_t skips = 0;
  std::set<std::string> members;  // processes that were members
  // Histories that random faults must make (main.cc).
  uint32_t deaths_in_evaluations = 0;
  uint32_t joins_across_evaluations =
      0;  // with patience: one was made since the change was planned
  uint32_t rollbacks_across_the_best = 0;  // the best evaluation left the lineage
};

// Fills `seen`, which outlives the watch.
std::unique_ptr<Check> make_watch(const World& world, Seen& seen);

}  // namespace lockstep::sim
