// A TorchScript file with the weights of a checkpoint, in evaluation mode.
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

// Reads model.path, sets every tensor that the checkpoint has, calls eval() and saves.
// `checkpoint`: the directory. kNoInput or kUsage if the run's file is gone or was replaced;
// kBadData if the checkpoint does not fit it.
Status export_script(const wire::ModelSpec& model, const std::string& checkpoint,
                     const std::string& file);

}  // namespace lockstep
