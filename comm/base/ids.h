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

// The numbers are those on disk and on the wire; order_of() says what comes before what.
enum class Phase : uint8_t { kTrain = 0, kEval = 1, kCheckpoint = 2, kEnd = 3, kEdge = 4 };

constexpr bool is_phase(uint64_t number) {
  return number <= static_cast<uint64_t>(Phase::kEdge);
}

// After the same number of steps: evaluation, then the script's code between two epochs, then the
// next step, or the last checkpoint and the end.
constexpr int order_of(Phase phase) {
  switch (phase) {
    case Phase::kEval:
      return 0;
    case Phase::kEdge:
      return 1;
    case Phase::kTrain:
      return 2;
    case Phase::kCheckpoint:
      return 3;
    case Phase::kEnd:
      break;
  }
  return 4;
}

// Whether a state with this phase comes after the evaluation and the code between two epochs, if
// its step has any.
constexpr bool is_after_edge(Phase phase) {
  return order_of(phase) > order_of(Phase::kEdge);
}

// A point of a lineage: `step` steps are applied, and `phase` comes next. Totally ordered.
struct ResumePoint {
  Step step = 0;
  Phase phase = Phase::kTrain;
  bool operator==(const ResumePoint&) const = default;
  constexpr std::strong_ordering operator<=>(const ResumePoint& other) const {
    if (const auto by_step = step <=> other.step; by_step != 0) return by_step;
    return order_of(phase) <=> order_of(other.phase);
  }
};

}  // namespace lockstep
