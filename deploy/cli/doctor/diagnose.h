// The measurements of `lockstep doctor`, and what they mean. This process measures the data; a
// worker process, which has the tensor library, measures the trainer.
//
// Thread-safety: one thread, which lives as long as the worker process should.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/doctor/doctor_report.h"

namespace lockstep {

struct DiagnoseOptions {
  double seconds = 40;    // for all measurements together
  std::string directory;  // for temporary files; the caller removes it
  std::function<void(const std::string& what)> progress = [](const std::string&) {};
  std::function<void()> opened = [] {};                 // the data are open, the time begins
  std::function<bool()> is_cut = [] { return false; };  // true: return with what is measured
};

// If the time or is_cut() ends before the trainer's first steps, the result has no trainer, and the
// finding says so. `job` is resolved. kUsage if train.global_batch is auto. Other errors come from
// the data, or from the worker process, with its last output.
Result<Diagnosis> diagnose(const wire::JobSpec& job, const DiagnoseOptions& options);

// Reads the figures that the worker process wrote about the trainer. kInternal if the text holds
// none.
Status read_trainer(const std::string& json, doctor::Measurements& out);

// A sentence if steps are faster with another allocator in every window; else empty.
std::string allocator_advice(const Diagnosis& found);

// A note if the windows of a rung vary so much that their median means little; else empty.
void note_unrest(doctor::Measurements& measured);

}  // namespace lockstep
