// The fingerprint must change when a machine computes other bits.
#include "worker/cuda/gpu_fingerprint.h"

#include <gtest/gtest.h>

#include <functional>

namespace lockstep {
namespace {

const GpuFacts kGpu{.name = "NVIDIA H100 80GB HBM3",
                    .major = 9,
                    .minor = 0,
                    .processors = 132,
                    .kernel_bits = 2,
                    .runtime = 13000};

TEST(GpuFingerprint, ChangesWithEachFact) {
  const std::function<void(GpuFacts&)> changes[] = {[](GpuFacts& gpu) { gpu.name = "NVIDIA H200"; },
                                                    [](GpuFacts& gpu) { gpu.major = 10; },
                                                    [](GpuFacts& gpu) { gpu.minor = 3; },
                                                    [](GpuFacts& gpu) { gpu.processors = 114; },
                                                    [](GpuFacts& gpu) { gpu.kernel_bits = 3; },
                                                    [](GpuFacts& gpu) { gpu.runtime = 13010; }};
  for (const auto& change : changes) {
    GpuFacts other = kGpu;
    change(other);
    EXPECT_NE(gpu_fingerprint(other), gpu_fingerprint(kGpu));
  }
}

}  // namespace
}  // namespace lockstep
