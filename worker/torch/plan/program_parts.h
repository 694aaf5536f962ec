// The kinds of an exported program's tensors (examination.h), the side effects of its forward, and
// whether it can be switched to evaluation by arguments.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "worker/model/exported_program/program.h"
#include "worker/model/exported_program/roles.h"
#include "worker/model/spec.h"
#include "worker/torch/model/model.h"
#include "worker/torch/plan/plan.h"

namespace lockstep::exported {

struct ProgramParts {
  std::vector<size_t> parameters;  // of Program::tensors, as layout.parameters
  std::vector<size_t> statistics;  // as layout.buffers
  std::vector<size_t> counters;    // as layout.step_counters
  ModelLayout layout;              // initial values from the file
  std::vector<std::string> notes;  // Model::notes(), without the program's name
  // Why evaluation needs a program of its own: "draws random numbers in aten.bernoulli_ (...)".
  // Empty: it does not.
  std::string needs_eval_program;
};

// A number of samples near `wanted` that the program takes.
uint64_t batch_near(const Program& program, uint64_t wanted);

// The numbers of samples that the program takes and that a batch can have: not 0, which a Dim may
// allow.
BatchRange batches_of(const Program& program);

// Whether the program's inputs match the data: the batch in the shape of the samples, and labels
// for each. kConfig; the message begins with what the program does.
Status check_signature(const Program& program, const ProgramRoles& roles,
                       const data::SampleShape& shape, uint32_t classes);

// Runs the plan of the training program on the CPU, forward and backward. kConfig; the message
// begins with what the program does. REQUIRES: check_signature() is ok.
Result<ProgramParts> examine_program(const ProgramPlan& plan, const ProgramRoles& roles,
                                     const data::SampleShape& shape, uint32_t classes);

}  // namespace lockstep::exported
