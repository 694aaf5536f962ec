// The inputs and outputs of a program by their roles, as tensors.
//
// Thread-safety: pure functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/model/exported_program/program.h"
#include "worker/model/exported_program/roles.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/plan/bound_program.h"

namespace lockstep::exported {

// Where the tensor of a user input comes from. REQUIRES: input.kind is InputKind::kUser.
InputSource user_source(const ProgramInput& input, const ProgramRoles& roles);

// REQUIRES: roles.gives_losses; `out` has the program's outputs.
OwnOutputs own_outputs(const std::vector<at::Tensor>& out, const ProgramRoles& roles);

}  // namespace lockstep::exported
