// The facts of a GPU and its libraries that decide the bits, as "key=value" lines of a run's
// fingerprint.
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct GpuFacts {
  std::string name;
  int major = 0;  // of the compute capability
  int minor = 0;
  int processors = 0;
  int kernel_bits = 0;  // raised when a kernel changes the order or the arithmetic of a sum
  int runtime = 0;      // of CUDA
};

inline std::vector<std::string> gpu_fingerprint(const GpuFacts& gpu) {
  return {"device=cuda",
          "gpu=" + gpu.name,
          "gpu_capability=" + std::to_string(gpu.major) + "." + std::to_string(gpu.minor),
          "gpu_processors=" + std::to_string(gpu.processors),
          "gpu_kernels=" + std::to_string(gpu.kernel_bits),
          "cuda_runtime=" + std::to_string(gpu.runtime)};
}

}  // namespace lockstep
