#include "metrics/node/gpu_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/unit/metrics/exposition.h"
#include "tests/unit/metrics/fake_gpus.h"

namespace lockstep::test {
namespace {

using ::testing::HasSubstr;

// Tests what a probe shows of the stand-in's GPUs.
class GpuProbeTest : public testing::Test {
 protected:
  void start(const std::string& library = FAKE_NVML_LIBRARY) {
    probe_ = std::make_unique<GpuProbe>(families_, library);
    look();
  }

  // Refreshes until what it asked is answered: a busy machine may take longer than a scrape waits.
  // An unanswered question is as old as the wait, or by a timer's error a little younger; and
  // nothing waits for its answer again.
  void look() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (; std::chrono::steady_clock::now() < until; std::this_thread::yield()) {
      probe_->refresh();
      shown_ = parse_exposition(families_.text());
      const auto age = value("lockstep_gpu_sample_age_seconds");
      if (!age || *age < 0.0005 * static_cast<double>(limits::kGpuSampleWaitMs)) return;
    }
  }

  void starts_with(const std::string& lines) {
    gpus_.say(lines);
    start();
  }

  void says(const std::string& lines) {
    gpus_.say(lines);
    look();
  }

  std::optional<double> value(const std::string& family, const std::string& labels = "") const {
    const auto found = shown_.find(family);
    if (found == shown_.end()) return std::nullopt;
    const auto series = found->second.series.find(family + labels);
    if (series == found->second.series.end()) return std::nullopt;
    return series->second;
  }

  // Returns a GPU's value in a family without labels of its own.
  std::optional<double> of(int gpu, const std::string& name) const {
    const std::string number = std::to_string(gpu);
    return value("lockstep_gpu_" + name, "{gpu=\"" + number + "\",uuid=\"GPU-" + number + "\"}");
  }

  std::optional<double> throttled(const std::string& reason) const {
    return value("lockstep_gpu_throttled", "{gpu=\"0\",reason=\"" + reason + "\",uuid=\"GPU-0\"}");
  }

  std::optional<double> xids(int gpu, const std::string& cause) const {
    const std::string number = std::to_string(gpu);
    return value("lockstep_gpu_xid_errors_total",
                 "{cause=\"" + cause + "\",gpu=\"" + number + "\",uuid=\"GPU-" + number + "\"}");
  }

  FakeGpus gpus_;
  Families families_{{}};
  std::unique_ptr<GpuProbe> probe_;
  ExposedFamilies shown_;
};

TEST_F(GpuProbeTest, ValuesArriveInTheUnitsOfTheirNames) {
  starts_with(kBusyGpus);
  EXPECT_EQ(value("lockstep_nvml_available"), 1);
  for (int gpu : {0, 1}) {
    EXPECT_EQ(of(gpu, "lost"), 0);
    EXPECT_DOUBLE_EQ(of(gpu, "utilization_ratio").value_or(-1), 0.75);
    EXPECT_DOUBLE_EQ(of(gpu, "memory_utilization_ratio").value_or(-1), 0.4);
    EXPECT_EQ(of(gpu, "memory_bytes"), 80e9);
    EXPECT_EQ(of(gpu, "memory_used_bytes"), 60e9);
    EXPECT_DOUBLE_EQ(of(gpu, "power_watts").value_or(-1), 350.5);
    EXPECT_EQ(of(gpu, "power_limit_watts"), 700);
    EXPECT_EQ(of(gpu, "temperature_celsius"), 65);
    EXPECT_EQ(of(gpu, "sm_clock_hertz"), 1.98e9);
    EXPECT_EQ(of(gpu, "ecc_uncorrected_errors_total"), 0);
    EXPECT_EQ(xids(gpu, "gpu"), 0);
    EXPECT_EQ(of(gpu, "last_xid"), 0);
  }
  EXPECT_EQ(of(2, "lost"), std::nullopt);
}

TEST_F(GpuProbeTest, ValuesChangeAndEachGpuHasItsOwn) {
  starts_with(kBusyGpus);
  says("devices 2\ntemperature.0 50\ntemperature.1 92\npower 800000\npower_limit 700000\n");
  EXPECT_EQ(of(0, "temperature_celsius"), 50);
  EXPECT_EQ(of(1, "temperature_celsius"), 92);
  EXPECT_EQ(of(0, "power_watts"), 800) << "more than its limit is shown as it is";
}

TEST_F(GpuProbeTest, OneVerdictOfAGpuIsOneAndNoneIsThereWhereNobodyLooks) {
  starts_with(kBusyGpus);
  const auto verdict = [this](int gpu, const std::string& which) {
    const std::string number = std::to_string(gpu);
    return value("lockstep_gpu_verdict",
                 "{gpu=\"" + number + "\",uuid=\"GPU-" + number + "\",verdict=\"" + which + "\"}");
  };
  EXPECT_EQ(verdict(0, "ok"), std::nullopt);
  for (const Fitness fitness : {Fitness::kOk, Fitness::kWatch, Fitness::kLeave}) {
    probe_->judge({{"GPU-1", fitness}, {"GPU-of-another-machine", Fitness::kLeave}});
    look();
    for (const char* which : {"ok", "watch", "leave"}) {
      EXPECT_EQ(verdict(1, which), which == std::string(fitness_name(fitness)) ? 1 : 0) << which;
      EXPECT_EQ(verdict(0, which), std::nullopt);
    }
  }
  probe_->judge({});
  look();
  EXPECT_EQ(verdict(1, "leave"), std::nullopt);
}

TEST_F(GpuProbeTest, EveryReasonToThrottleIsOneOrZero) {
  starts_with("devices 1\nthrottle 72\n");  // hardware, and of it thermal
  EXPECT_EQ(throttled("hardware"), 1);
  EXPECT_EQ(throttled("hardware_thermal"), 1);
  EXPECT_EQ(throttled("software_thermal"), 0);
  EXPECT_EQ(throttled("power_cap"), 0);
  EXPECT_EQ(throttled("power_brake"), 0);
  says("devices 1\nthrottle 164\n");
  EXPECT_EQ(throttled("hardware"), 0);
  EXPECT_EQ(throttled("hardware_thermal"), 0);
  EXPECT_EQ(throttled("software_thermal"), 1);
  EXPECT_EQ(throttled("power_cap"), 1);
  EXPECT_EQ(throttled("power_brake"), 1);
}

TEST_F(GpuProbeTest, ErrorsAreCountedAndThoseOfProgramsApart) {
  starts_with("devices 2\necc.1 2\n");
  EXPECT_EQ(of(1, "ecc_uncorrected_errors_total"), 2);
  says("devices 2\necc.1 5\nxids.1 3\nxid.1 48\n");
  EXPECT_EQ(of(0, "ecc_uncorrected_errors_total"), 0);
  EXPECT_EQ(of(1, "ecc_uncorrected_errors_total"), 5);
  EXPECT_EQ(xids(0, "gpu"), 0);
  EXPECT_EQ(xids(1, "gpu"), 3);
  EXPECT_EQ(of(1, "last_xid"), 48);
  says("devices 2\necc.1 5\nxids.1 4\nxid.1 43\n");
  EXPECT_EQ(xids(1, "gpu"), 3);
  EXPECT_EQ(xids(1, "program"), 1);
  EXPECT_EQ(of(1, "last_xid"), 43);
}

TEST_F(GpuProbeTest, AnErrorInOneQuestionLeavesTheOthers) {
  starts_with(kBusyGpus);
  says(std::string(kBusyGpus) + "error.power.1 3\nerror.ecc.1 3\nerror.throttle.0 999\n");
  EXPECT_EQ(of(0, "power_watts"), 350.5);
  EXPECT_EQ(of(1, "power_watts"), std::nullopt) << "an old value would look like one of now";
  EXPECT_EQ(of(1, "power_limit_watts"), 700);
  EXPECT_EQ(of(1, "temperature_celsius"), 65);
  EXPECT_EQ(of(1, "lost"), 0);
  EXPECT_EQ(throttled("power_cap"), std::nullopt);
  says(kBusyGpus);
  EXPECT_EQ(of(1, "power_watts"), 350.5);
  EXPECT_EQ(throttled("power_cap"), 1);
}

TEST_F(GpuProbeTest, AGpuThatCannotDoSomethingDoesNotShowIt) {
  starts_with(std::string(kBusyGpus) + "error.ecc 3\nerror.events 3\n");
  EXPECT_EQ(of(0, "temperature_celsius"), 65);
  EXPECT_FALSE(shown_.contains("lockstep_gpu_ecc_uncorrected_errors_total"));
  EXPECT_FALSE(shown_.contains("lockstep_gpu_xid_errors_total"));
  EXPECT_FALSE(shown_.contains("lockstep_gpu_last_xid"));
}

TEST_F(GpuProbeTest, ALostGpuIsShownAsThatAndTheOthersGoOn) {
  starts_with(std::string(kBusyGpus) + "ecc.1 7\n");
  says(std::string(kBusyGpus) + "error.all.1 15\nxids.1 1\nxid.1 79\n");
  EXPECT_EQ(of(1, "lost"), 1);
  EXPECT_EQ(of(1, "temperature_celsius"), std::nullopt);
  EXPECT_EQ(of(1, "ecc_uncorrected_errors_total"), 7);
  EXPECT_EQ(xids(1, "gpu"), 1);
  EXPECT_EQ(of(0, "lost"), 0);
  EXPECT_EQ(of(0, "temperature_celsius"), 65);
}

TEST_F(GpuProbeTest, AGpuThatIsLostFromTheStartHasItsIndex) {
  starts_with(std::string(kBusyGpus) + "error.device.0 15\n");
  EXPECT_EQ(value("lockstep_gpu_lost", R"({gpu="0",uuid="unknown"})"), 1);
  EXPECT_EQ(of(1, "lost"), 0);
  EXPECT_EQ(of(1, "temperature_celsius"), 65);
  EXPECT_EQ(shown_.at("lockstep_gpu_temperature_celsius").series.size(), 1u);
}

TEST_F(GpuProbeTest, NoMoreGpusAreShownThanTheLimit) {
  starts_with("devices 100\ntemperature 65\n");
  EXPECT_EQ(shown_.at("lockstep_gpu_lost").series.size(), limits::kGpus);
  EXPECT_EQ(of(limits::kGpus - 1, "temperature_celsius"), 65);
}

TEST_F(GpuProbeTest, AnOldLibraryShowsWhatItHas) {
  gpus_.say(kBusyGpus);
  start(FAKE_OLD_NVML_LIBRARY);
  EXPECT_EQ(value("lockstep_nvml_available"), 1);
  EXPECT_FALSE(shown_.contains("lockstep_gpu_power_watts"));
  EXPECT_EQ(of(0, "power_limit_watts"), 700);
  EXPECT_EQ(throttled("power_cap"), 1) << "under the name that it had";
}

TEST_F(GpuProbeTest, WithoutNvmlOneFamilySaysSo) {
  start("libnot-there.so.1");
  EXPECT_EQ(value("lockstep_nvml_available"), 0);
  EXPECT_EQ(shown_.size(), 1u);
  EXPECT_EQ(probe_->status().code(), Code::kNoInput);
}

TEST_F(GpuProbeTest, AnotherLibraryIsNotNvml) {
  start("libm.so.6");
  EXPECT_EQ(value("lockstep_nvml_available"), 0);
  EXPECT_EQ(shown_.size(), 1u);
  EXPECT_EQ(probe_->status().code(), Code::kConfig);
  EXPECT_THAT(probe_->status().message(), Names("nvmlInit_v2"));
}

TEST_F(GpuProbeTest, NvmlThatDoesNotStartSaysWhy) {
  starts_with("devices 1\nerror.init 9\n");
  EXPECT_EQ(value("lockstep_nvml_available"), 0);
  EXPECT_EQ(shown_.size(), 1u);
  EXPECT_THAT(probe_->status().message(), HasSubstr("the stand-in does not want to"));
}

TEST_F(GpuProbeTest, AMachineWithNvmlAndNoGpuShowsNone) {
  starts_with("devices 0\n");
  EXPECT_EQ(value("lockstep_nvml_available"), 1);
  EXPECT_FALSE(shown_.contains("lockstep_gpu_lost"));
}

}  // namespace
}  // namespace lockstep::test
