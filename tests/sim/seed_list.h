// A file of seeds that once failed, each with the drawing that makes its history (seeds.txt).
//
//   1 8408   # what was wrong
//   2 1234567
//   3 1234568
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "tests/sim/simulation.h"

namespace lockstep::sim {

struct ListedSeed {
  uint64_t seed = 0;
  Drawing drawing = kUsualDrawing;
};

// kUsage with file and line if a line has another form, or if the file names no seed.
Result<std::vector<ListedSeed>> read_seed_list(const std::string& path);

}  // namespace lockstep::sim
