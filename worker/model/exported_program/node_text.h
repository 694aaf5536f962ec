// The part of a node's metadata that is for people: the line of Python, and the modules around it.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

// `stack_trace`: frames of Python, outermost first. "model.py, line 9: x = self.fc(x)": the
// innermost frame of the user's own files, else of another installed package, else of PyTorch, else
// of code that PyTorch has generated.
std::string user_line(std::string_view stack_trace);

// `nn_module_stack`: "key,path,type" for each module, with ';' between them.
std::vector<ModuleOfNode> modules_of(std::string_view nn_module_stack);

}  // namespace lockstep::exported
