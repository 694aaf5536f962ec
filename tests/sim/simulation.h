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

// The way of drawing a seed's faults. A seed and its drawing name a history.
enum class Drawing : uint8_t {
  // Every kind from one stream of numbers, so one more kind would change every seed. It knows the
  // kinds of its time, and plays the seeds that were found with it (seeds.txt).
  kOneStream = 1,
  // Every kind from a stream of its own: one more kind changes only the seeds in which it strikes.
  kOwnStreams = 2,
  // As kOwnStreams, and worlds have what loops of scripts came to have later: several steps on a
  // batch, a script that ends the run. Each draws from a stream of its own.
  kShapes = 3,
};
inline constexpr Drawing kUsualDrawing = Drawing::kShapes;

struct Plan {
  uint64_t seed = 0;
  WorldOptions options;
  std::vector<FaultSpec> faults;
  Drawing drawing = Drawing::kOneStream;
};

// The simulation of a seed.
Plan plan_of(uint64_t seed, Drawing drawing = kUsualDrawing);
// The faults that a seed draws of the first `kinds` kinds, each from its own stream.
std::vector<FaultSpec> draw_faults(uint64_t seed, uint64_t kinds);
// The same training with only the given faults.
Plan plan_with(uint64_t seed, const std::vector<FaultSpec>& faults,
               Drawing drawing = Drawing::kOwnStreams);

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
