// The trainer by itself: steps of the job's real model, on one worker's share of a batch that is
// there already, on twice as many samples a slot, and on one that is in the GPU's memory already.
//
// Thread-safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "data/dataset/dataset.h"

namespace lockstep {

class DeviceModule;

// Steps of one kind, by short windows that take turns with those of the others, so that what
// else the machine does falls on all.
struct StepTimes {
  uint64_t samples = 0;         // of a step
  std::vector<double> steps_s;  // by window, seconds of a step without waiting for its batch
  // By window, of its shortest step: on a CPU the cores' time that it took, which other processes
  // hardly change; on a GPU as above.
  std::vector<double> shortest_s;
  std::string why_none;  // where there are none
};

struct TrainerTimes {
  StepTimes once;   // the job's own
  StepTimes twice;  // of twice as many samples a slot
  // As once, on samples that the GPU has; not of padded documents, whose slots are of many lengths.
  // Without a GPU there are none, and no reason.
  StepTimes resident;
};

// `seconds` for all of it, about; at least a step in each window. `module`: the GPU, or null.
// Errors as Engine's; but that only the larger step cannot be, or a third engine beside both, is
// told in `twice` and `resident`.
Result<TrainerTimes> time_trainer(const wire::JobSpec& job, const data::Dataset& dataset,
                                  double seconds, DeviceModule* module);

}  // namespace lockstep
