// The version of a library that this process has loaded. LibTorch brings cuBLAS and cuDNN as
// packages of their own, and a library that a site puts before them in the loader's path wins.
//
// Thread-safety: a function without state.
#pragma once

#include <string>

namespace lockstep {

// `function`: without arguments, gives the version as a size_t: "cudnnGetVersion". "none" if no
// library that was loaded for all has it.
std::string library_version(const char* function);

}  // namespace lockstep
