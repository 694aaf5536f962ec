// The parts of a TorchScript module. Lockstep finds them by running the module.
//
//   parameters  tensors that require a gradient
//   statistics  floats that a forward changes while training
//   counters    int64 that a forward increments by one, and that do not influence the output
//   constants   all other tensors, frozen parameters too: they stay as the file has them
//
// Lockstep refuses a tensor that changes in any other way: it could not be the same on every rank,
// or would not survive a restart.
//
// Thread-safety: free functions; the module belongs to one thread.
#pragma once

#include <vector>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "worker/model/script_module.h"
#include "worker/model/spec.h"

namespace lockstep {

struct ScriptParts {
  std::vector<ScriptTensor> parameters;
  std::vector<ScriptTensor> statistics;
  std::vector<ScriptTensor> counters;
  std::vector<ScriptTensor> constants;
  ModelLayout layout;  // initial values from the file
};

// kConfig; the message begins with what the module does, "has no ...". Throws what the script
// throws.
Result<ScriptParts> examine_script(ScriptModule& module, const data::SampleShape& shape,
                                   uint32_t classes);

}  // namespace lockstep
