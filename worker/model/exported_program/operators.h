// The operators that an exported program may call: aten's, except those that open files, share
// memory or leave it unset, and a few functions of Python on numbers.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

// Empty: Lockstep refuses the operator.
std::optional<NodeKind> kind_of_target(std::string_view target);

// Why Lockstep refuses the operator, and what to do: "is not an operator of aten; ...".
std::string why_refused(std::string_view target);

}  // namespace lockstep::exported
