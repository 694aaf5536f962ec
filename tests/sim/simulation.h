// One simulation: a world, a cluster and faults from one seed. Everything runs in one thread, so
// the same seed gives the same history.
//
// Thread-safety: shares nothing; several may run in several processes.
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

// The simulation of a seed.
Plan plan_of(uint64_t seed);
// The same training with only the given faults.
Plan plan_with(uint64_t seed, const std::vector<FaultSpec>& faults);

std::string describe(const Plan& plan);

struct Outcome {
  std::vector<Failure> failures;  // none if all was well
  std::vector<std::string> last;  // the last events, if there was a failure
  uint64_t trace_hash = 0;
  uint64_t events = 0;
  int64_t virtual_ms = 0;
  uint32_t starts = 0;  // of the whole run
  bool was_stopped_by_samples = false;
  std::string stuck;  // why the run did not finish; empty if it did
  Seen seen;
};

// `prints`: every event to stdout. `script` acts before the first event.
using ClusterScript = std::function<void(Cluster&)>;
Outcome simulate(const Plan& plan, bool prints = false, const ClusterScript& script = nullptr);

}  // namespace lockstep::sim
