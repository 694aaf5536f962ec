#include "worker/model/exported_program/predict_roles.h"

namespace lockstep::exported {

Result<ProgramRoles> predict_roles(const Program& program, bool is_of_tokens,
                                   const FieldNames& names) {
  LOCKSTEP_ASSIGN_OR_RETURN(ProgramRoles roles, roles_of(program, is_of_tokens, names));
  if (roles.labels || roles.takes_targets)
    return Status(Code::kConfig,
                  "takes labels, and model.predict_path names a program that takes inputs alone: "
                  "export a module whose forward takes the batch and returns the logits");
  if (roles.gives_losses)
    return Status(Code::kConfig,
                  "gives losses, and model.predict_path names a program that gives logits: export "
                  "a module whose forward returns the logits alone");
  return roles;
}

}  // namespace lockstep::exported
