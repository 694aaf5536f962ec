// The functions of Python on numbers in an exported program: sizes of batches, computed with.
//
// Numbers are IValues of int, double or bool, and behave as Python's: division of whole numbers
// rounds down, truediv gives a float. A number that does not fit int64 throws std::runtime_error.
//
// Thread-safety: pure functions.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <span>
#include <string_view>

namespace lockstep::exported {

using NumberFunction = c10::IValue (*)(std::span<const c10::IValue> arguments);

struct PythonFunction {
  std::string_view target;  // "_operator.add"
  size_t arguments = 0;
  NumberFunction call = nullptr;
};

// Null: there is none of that name.
const PythonFunction* find_python_function(std::string_view target);

}  // namespace lockstep::exported
