// Measures the trainer alone. It runs steps of the job's real model on one worker's share of a
// batch that lies in memory; on twice as many samples a slot; and on a batch that lies in the GPU's
// memory.
//
// Thread-safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"

namespace lockstep {

class DeviceModule;

// Steps of one kind, in short windows. The windows of all kinds take turns, so the machine's other
// work slows all kinds alike.
struct StepTimes {
  uint64_t samples = 0;         // samples in a step
  std::vector<double> steps_s;  // by window: mean seconds a step, without the wait for its batch
  // By window: seconds of its shortest step. On a CPU this is the cores' time of the step, which
  // other processes hardly change. On a GPU it is measured as in steps_s.
  std::vector<double> shortest_s;
  std::string why_none;  // the reason if there are no steps
};

struct TrainerTimes {
  StepTimes once;   // the job's own step
  StepTimes twice;  // a step with twice as many samples a slot
  // As `once`, on samples that the GPU already has. Not measured for padded documents, because
  // their slots differ in length. Without a GPU there are no steps and no reason.
  StepTimes resident;
};

// `seconds`: the time for all measurements; longer only where a step or two take as long. `module`:
// the GPU, or null. Errors are the Engine's. If only the larger step or only the resident one
// cannot run, `twice` or `resident` says why, and there is no error.
Result<TrainerTimes> time_trainer(const wire::JobSpec& job, const data::Dataset& dataset,
                                  double seconds, DeviceModule* module);

}  // namespace lockstep
