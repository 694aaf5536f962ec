// The EngineMaker of lockstep-worker: the job's data sets, and its model on LibTorch, on the CPU or
// on a GPU.
//
// Thread-safety: as EngineMaker.
#pragma once

#include <memory>

#include "worker/process/engine_maker.h"

namespace lockstep {

std::unique_ptr<EngineMaker> torch_engine_maker();

}  // namespace lockstep
