// One simulation: a world, a cluster and faults from one seed; everything in one thread, so that
// the same seed gives the same history.
//
// Thread-safety: none of it is shared; several may run in several processes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/fault.h"
#include "tests/sim/watch.h"

namespace lockstep::sim {

struct Plan {
  uint64_t seed = 0;
  WorldOptions options;
  std::vector<FaultSpec> faults;
};

// What a seed means.
Plan plan_of(uint64_t seed);
// The same training with the given faults only.
Plan plan_with(uint64_t seed, const std::vector<FaultSpec>& faults);

std::string describe(const Plan& plan);

struct Outcome {
  std::vector<Failure> failures;  // none: all was well
  std::vector<std::string> last;  // events, if something was not
  uint64_t trace_hash = 0;
  uint64_t events = 0;
  int64_t virtual_ms = 0;
  uint32_t starts = 0;  // of the whole run
  bool was_stopped_by_samples = false;
  std::string stuck;  // why it was not finished; empty: it was
  Seen seen;
};

// `prints`: every event to stdout. `script` acts before the first event.
using ClusterScript = std::function<void(Cluster&)>;
Outcome simulate(const Plan& plan, bool prints = false, const ClusterScript& script = nullptr);

}  // namespace lockstep::sim
