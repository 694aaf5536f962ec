// The facts that optimizer.name muon needs besides the flat buffers: the parameters that it updates
// as matrices, and the arithmetic.
//
// Thread-safety: a free function; the model belongs to one thread.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"
#include "worker/engine/boundary_state.h"
#include "worker/torch/model/model.h"

namespace lockstep {

// Empty for any other optimizer.
// kUsage if no matrix of a hidden layer is trained: then it would be adamw.
Result<MuonParts> muon_parts(const wire::JobSpec& job, const Model& model, const FlatLayout& layout,
                             const data::Dataset& train);

}  // namespace lockstep
