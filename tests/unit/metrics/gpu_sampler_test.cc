#include "metrics/node/gpu_sampler.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "comm/base/limits.h"
#include "tests/unit/metrics/fake_gpus.h"

namespace lockstep::test {
namespace {

using SteadyClock = std::chrono::steady_clock;

int64_t ms_since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - start).count();
}

// Asks until there is an answer of that temperature.
GpuSamples wait_for_temperature(GpuSampler& sampler, double celsius) {
  GpuSamples samples;
  for (int i = 0; i < 1'000; ++i) {
    samples = sampler.sample();
    if (!samples.gpus.empty() && samples.gpus[0].temperature_celsius == celsius) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return samples;
}

// Returns how often the thread gave up its processor by itself: no busy machine makes it do so.
int64_t waits_of_this_thread() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

TEST(GpuSampler, ADriverThatHangsIsAwaitedOnceAndItsLastValuesGrowOld) {
  FakeGpus gpus;
  gpus.say("devices 1\ntemperature 65\n");
  GpuSampler sampler(FAKE_NVML_LIBRARY);
  ASSERT_EQ(wait_for_temperature(sampler, 65).gpus.size(), 1u);

  gpus.say("devices 1\ntemperature 66\nhang 1\n");
  (void)sampler.sample();  // waits in vain
  const int64_t before = waits_of_this_thread();
  GpuSamples samples;
  constexpr int kLooks = 50;
  for (int i = 0; i < kLooks; ++i) samples = sampler.sample();
  EXPECT_LT(waits_of_this_thread() - before, kLooks / 2) << "it waited every time";
  EXPECT_TRUE(samples.is_available);
  ASSERT_EQ(samples.gpus.size(), 1u);
  EXPECT_EQ(samples.gpus[0].temperature_celsius, 65);
  EXPECT_GE(samples.age_seconds.value_or(0), 1e-3 * limits::kGpuSampleWaitMs);

  gpus.say("devices 1\ntemperature 67\n");
  EXPECT_EQ(wait_for_temperature(sampler, 67).gpus[0].temperature_celsius, 67);
}

TEST(GpuSampler, EndsWithinItsTimeWhileTheDriverHangs) {
  FakeGpus gpus;
  gpus.say("devices 1\nhang 1\n");
  const auto start = SteadyClock::now();
  {
    GpuSampler sampler(FAKE_NVML_LIBRARY);
    const GpuSamples samples = sampler.sample();
    EXPECT_FALSE(samples.is_available);
    EXPECT_TRUE(samples.age_seconds.has_value());
  }
  EXPECT_GE(ms_since(start), limits::kGpuLeaveWaitMs);
  EXPECT_LT(ms_since(start), 60'000);
  gpus.say("");  // its thread ends in order, too
}

TEST(GpuSampler, WithoutALibraryNothingIsAwaited) {
  GpuSampler sampler("libnot-there.so.1");
  const GpuSamples samples = sampler.sample();
  EXPECT_FALSE(samples.is_available);
  EXPECT_FALSE(samples.age_seconds.has_value());
  EXPECT_TRUE(samples.gpus.empty());
}

}  // namespace
}  // namespace lockstep::test
