// The part of a generation that an engine is given, and the engine's report of a step.
//
// Thread-safety: values. StepGate's functions are called on the training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/work_in_hand.h"
#include "comm/collectives/device_collective.h"
#include "comm/run/evaluation/check_after.h"
#include "comm/run/evaluation/eval_track.h"
#include "comm/run/plan/skip_set.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

class FlightRecord;
class PhaseClock;
class TraceLog;

namespace data {
class PrefetchPolicy;
}  // namespace data

// One fixed membership, as the engine sees it. The Collectives live until end_generation().
struct GenerationView {
  Generation generation = 0;
  Collective* collective = nullptr;
  // Sums gradients and statistics over device_buffer(); null: the host's Collective sums them.
  DeviceCollective* devices = nullptr;
  std::vector<SlotRun> slot_runs;            // by rank
  std::vector<uint64_t> bucket_bounds;       // elements, ascending, from wire::BucketPlan
  uint64_t total_steps = 0;                  // length of the run, for the schedule
  PossibleEnds ends;                         // where work is compared besides train.check_every
  bool is_writer = false;                    // this member writes the checkpoints
  SkipSet skips;                             // slots that this generation leaves out
  PhaseClock* phases = nullptr;              // learns what a step is doing; null: the engine's own
  EvalMark evaluated = {};                   // the last evaluation that the state has seen
  WorkInHand* in_hand = nullptr;             // learns which samples are in work; may be null
  data::PrefetchPolicy* prefetch = nullptr;  // null: nothing is read ahead
  // For measurements, and only if the device has memory of its own: a slot computes with the
  // samples of an earlier slot of the same size, so no samples are copied to the device.
  bool keeps_inputs = false;
  FlightRecord* flight = nullptr;  // notes the sums; may be null
  TraceLog* trace = nullptr;       // records the steps of its window; null: records nothing
  // Asked once a step, when the last bucket leaves: does this member know of a planned change?
  std::function<bool()> wants_switch = [] { return false; };
  // Asked before each batch of an evaluation: is the generation closed?
  std::function<bool()> is_closed = [] { return false; };
  // Hears of each batch of an evaluation that this rank has scored. Set by the StepDriver.
  std::function<void()> has_scored = [] {};
  // Receives what is worth a line in the log, on the training thread.
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

// The gate around apply (worker/session/apply_gate.h). A step calls try_enter() before apply and
// leave() after it. If try_enter() says no, the step ends with kAborted and nothing has changed.
// end_here() comes between the two, in the step with which a script ends the run.
struct StepGate {
  std::function<bool()> try_enter = [] { return true; };
  std::function<void()> end_here = [] {};
  std::function<void()> leave = [] {};
};

struct StepOutcome {
  wire::StepRecord record;
  bool epoch_ended = false;
  bool all_want_stop = false;    // every member asked for a stop in this step's last bucket
  bool ends_here = false;        // the script ends the run with this step, on every member
  bool all_want_switch = false;  // every member knew of the planned change, in the same bucket
  std::optional<wire::CheckReport> check;  // after a step in which members check each other
};

// Where a worker is now, for heartbeats and metrics.
struct Progress {
  Step step = 0;
  Phase phase = Phase::kTrain;
  // The number of buckets of the step in flight that are sent. Where GPUs sum, the number that the
  // GPU itself has finished, however many its host has enqueued; one more once all sums are there.
  // In an evaluation: the batches that are scored.
  uint32_t bucket = 0;
  uint32_t enqueued = 0;   // buckets that the host has sent or enqueued
  bool is_paused = false;  // by a debugger in a script
};

}  // namespace lockstep
