// The parts of a TorchScript module: its tensors, by the kinds of examination.h. Its parameters are
// those that require a gradient.
//
// Thread-safety: free functions; the module belongs to one thread.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "worker/model/spec.h"
#include "worker/torch/model/model.h"
#include "worker/torch/model/script_module.h"

namespace lockstep {

struct ScriptParts {
  std::vector<ScriptTensor> parameters;
  std::vector<ScriptTensor> statistics;
  std::vector<ScriptTensor> counters;
  std::vector<ScriptTensor> constants;
  ModelLayout layout;  // initial values from the file
};

// The output of this name; end() if there is none.
ScriptOutputs::const_iterator find_output(const ScriptOutputs& outputs, const std::string& name);

// The `count` arguments that forward() needs: the batch, the further inputs in the order of the
// job, and the targets or the labels. Whole numbers are int64.
std::vector<at::Tensor> script_inputs(const data::SampleShape& shape, const ModelInputs& inputs,
                                      size_t count);
// Whether targets or labels are among so many arguments.
bool takes_targets(const data::SampleShape& shape, size_t count);

// kConfig; the message begins with what the module does, "has no ...". Throws what the script
// throws.
Result<ScriptParts> examine_script(ScriptModule& module, const data::SampleShape& shape,
                                   uint32_t classes);

}  // namespace lockstep
