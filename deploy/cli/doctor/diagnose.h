// The measurements of `lockstep doctor`: the data's rungs here, the trainer's in a worker process,
// which has the tensor library; and what they say.
//
// Thread-safety: one thread, which lives as long as the worker process should.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/doctor/doctor_report.h"

namespace lockstep {

struct DiagnoseOptions {
  double seconds = 40;    // for all measurements together, about
  std::string directory;  // for files on the way; whoever calls removes it
  std::function<void(const std::string& what)> progress = [](const std::string&) {};
};

// `job` is resolved. kUsage for a global batch that is to be found; else errors as of the data, and
// those of the worker process with what it said.
Result<Diagnosis> diagnose(const wire::JobSpec& job, const DiagnoseOptions& options);

// The trainer's figures, as the worker process writes them, into `out`. kInternal where they are
// none.
Status read_trainer(const std::string& json, doctor::Measurements& out);

// A note where the windows of a rung are so far apart that their median is worth little.
void note_unrest(doctor::Measurements& measured);

}  // namespace lockstep
