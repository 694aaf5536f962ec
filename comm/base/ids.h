// The design's terms as types. They are plain integers, because they travel in messages, in shared
// memory and in SQLite, and code compares them everywhere.
#pragma once

#include <compare>
#include <cstdint>

namespace lockstep {

using MemberId = uint64_t;    // one worker's identity for its whole life; 0 = none
using Term = uint64_t;        // one incarnation of the coordinator; the first is 1
using Generation = uint64_t;  // one fixed membership; the first is 1; never reused
using Step = uint64_t;        // optimizer steps since the start of the run; the first is 0
using Epoch = uint32_t;       // passes over the training data; the first is 0

enum class Phase : uint8_t { kTrain = 0, kEval = 1, kCheckpoint = 2, kEnd = 3 };

// A point of a lineage: `step` steps are applied, and `phase` comes next. Totally ordered.
struct ResumePoint {
  Step step = 0;
  Phase phase = Phase::kTrain;
  auto operator<=>(const ResumePoint&) const = default;
};

}  // namespace lockstep
