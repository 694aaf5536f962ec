// NCCL connects no two workers on one GPU, nor on two slices (MIG) of one GPU.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {

// Who has the newcomer's GPU already, and what to do, where gradients go over NCCL; else empty. A
// member at the newcomer's own place does not count: the newcomer is there in its stead.
std::string shared_gpu(const Turn& turn, const wire::Register& newcomer);

}  // namespace lockstep::coordinator
