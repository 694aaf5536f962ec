// The roles in a program for predictions (model.predict_path), which must take inputs alone and
// give logits.
//
// Thread-safety: a free function.
#pragma once

#include "comm/base/status.h"
#include "worker/model/exported_program/roles.h"

namespace lockstep::exported {

// Errors of roles_of(); kConfig for a program that takes targets or gives losses. The message
// begins with what the program does.
Result<ProgramRoles> predict_roles(const Program& program, bool is_of_tokens,
                                   const FieldNames& names);

}  // namespace lockstep::exported
