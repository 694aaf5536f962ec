// Reads the exported programs of a job before any process starts, and reports at once the errors
// that it can find without data and without LibTorch.
//
// Thread-safety: a free function.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

// Ok unless model.name is exported. kConfig, kBadData or kNoInput with a sentence if
// - a program cannot be read or trained (worker/model/exported_program/read_program.h)
// - it takes another kind of input than the training data, or several
// - a batch of train.global_batch, train.slots or train.eval_batch does not fit it
// - the programs differ in their parameters
// - the program of model.predict_path takes labels, or gives losses.
// REQUIRES: the job is resolved.
Status check_exported_model(const wire::JobSpec& job);

}  // namespace lockstep
