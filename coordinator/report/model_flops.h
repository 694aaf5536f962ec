// The arithmetic of one sample, for the share of the devices' peak that a run reaches (MFU).
//
// Thread-safety: pure function.
#pragma once

#include "comm/run/job/job.pb.h"

namespace lockstep::coordinator {

// Floating-point operations of forward and backward for one sample; 0: unknown for this model.
// REQUIRES: the model is resolved.
double flops_per_sample(const wire::ModelSpec& model);

}  // namespace lockstep::coordinator
