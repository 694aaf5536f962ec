// Checks that a GPU has matrix products in fp8 (train.precision).
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <tuple>

#include "comm/base/status.h"
#include "worker/cuda/gpu_fingerprint.h"

namespace lockstep {

// kConfig, with the GPU and what to do, unless `gpu` has them. `index`: its number.
inline Status check_fp8(const GpuFacts& gpu, int index) {
  if (std::tuple(gpu.major, gpu.minor) >= std::tuple(8, 9)) return Status::ok();
  return {Code::kConfig,
          "train.precision=fp8 needs a GPU of compute capability 8.9 or newer (L4, L40S, H100, "
          "B200); GPU " +
              std::to_string(index) + " is an " + gpu.name + " (" + std::to_string(gpu.major) +
              "." + std::to_string(gpu.minor) + "): set train.precision=bf16"};
}

}  // namespace lockstep
