// The fingerprint of exact runs names what chooses a device's kernels.
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "worker/torch/device/library_version.h"
#include "worker/torch/engine/numerics_effect.h"

namespace lockstep {
namespace {

using testing::make_patterns;
using testing::PlainModule;
using testing::small_job;

// MB_CUR_MAX calls this function, and it gives a size_t, too.
TEST(LibraryVersion, IsWhatTheLoadedLibrarySays) {
  EXPECT_EQ(library_version("__ctype_get_mb_cur_max"), std::to_string(MB_CUR_MAX));
  EXPECT_EQ(library_version("cudnnGetVersionOfNothing"), "none");
}

// The fingerprint shows what chooses kernels on the device, attention's too.
TEST(DeviceNumerics, ResultsOfTheDeviceAreInTheFingerprintOfExactRuns) {
  const auto results = [](const std::string& numerics, const std::string& precision) {
    wire::JobSpec job = small_job("mlp");
    job.mutable_comm()->set_numerics(numerics);
    job.mutable_train()->set_precision(precision);
    const auto dataset = make_patterns(20);
    PlainModule module;
    const auto lines = testing::make_engine(job, *dataset, nullptr, &module).value()->fingerprint();
    const auto found = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("results=");
    });
    return found == lines.end() ? "" : *found;
  };
  const std::string exact = results("exact", "fp32");
  EXPECT_EQ(exact, "results=" + numerics_effect_on(at::kCPU, at::kFloat));
  EXPECT_NE(exact, "results=" + numerics_effect(at::kFloat));
  EXPECT_NE(exact, results("exact", "bf16"));
  at::Context& context = at::globalContext();
  context.setSDPUseFlash(false);
  const std::string by_math = results("exact", "fp32");
  context.setSDPUseFlash(true);
  EXPECT_NE(exact, by_math);
  EXPECT_EQ(exact, results("exact", "fp32"));
}

TEST(NumericsEffect, AMachineThatComputesOtherBitsTheSecondTimeStartsNoWorker) {
  EXPECT_EQ(*same_twice([] { return std::string("a"); }), "a");
  int calls = 0;
  const auto other = same_twice([&] { return ++calls == 1 ? std::string("a") : std::string("b"); });
  EXPECT_THAT(other, FailsWith(Code::kInternal, Names("a, then b"), Advises("test it")));
}

}  // namespace
}  // namespace lockstep
