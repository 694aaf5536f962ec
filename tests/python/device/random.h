// The generator from which the stand-in device draws.
#pragma once

#include <ATen/core/Generator.h>

namespace lockstep::stand_in {

const at::Generator& generator();

}  // namespace lockstep::stand_in
