#include "metrics/node/gpu_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <array>
#include <utility>

namespace lockstep {
namespace {

struct ValueRow {
  const char* name;
  const char* help;
  std::optional<double> GpuSample::*value;
};

constexpr std::array kValueRows = {
    ValueRow{"lockstep_gpu_utilization_ratio", "Share of time in which a kernel ran.",
             &GpuSample::utilization_ratio},
    ValueRow{"lockstep_gpu_memory_utilization_ratio",
             "Share of time in which the GPU's memory was read or written.",
             &GpuSample::memory_utilization_ratio},
    ValueRow{"lockstep_gpu_memory_bytes", "Memory of the GPU.", &GpuSample::memory_bytes},
    ValueRow{"lockstep_gpu_memory_used_bytes", "Memory of the GPU that is in use, by any process.",
             &GpuSample::memory_used_bytes},
    ValueRow{"lockstep_gpu_power_watts", "Power that the GPU draws.", &GpuSample::power_watts},
    ValueRow{"lockstep_gpu_power_limit_watts", "Power that the GPU may draw.",
             &GpuSample::power_limit_watts},
    ValueRow{"lockstep_gpu_temperature_celsius", "Temperature of the chip.",
             &GpuSample::temperature_celsius},
    ValueRow{"lockstep_gpu_sm_clock_hertz", "Clock of the GPU's processors.",
             &GpuSample::sm_clock_hertz},
};

struct ThrottleRow {
  const char* reason;
  unsigned long long bit;
};

constexpr std::array kThrottleRows = {
    ThrottleRow{"power_cap", nvml::kSwPowerCap},
    ThrottleRow{"software_thermal", nvml::kSwThermalSlowdown},
    ThrottleRow{"hardware", nvml::kHwSlowdown},
    ThrottleRow{"hardware_thermal", nvml::kHwThermalSlowdown},
    ThrottleRow{"power_brake", nvml::kHwPowerBrake},
};

constexpr std::array kVerdicts = {Fitness::kOk, Fitness::kWatch, Fitness::kLeave};

}  // namespace

// One GPU's series.
class GpuProbe::Gpu {
 public:
  Gpu(Families& families, MetricLabels labels) : families_(families), labels_(std::move(labels)) {
    for (const ValueRow& row : kValueRows)
      values_.emplace_back(families, row.name, row.help, labels_);
    for (const ThrottleRow& row : kThrottleRows)
      throttled_.emplace_back(families, "lockstep_gpu_throttled",
                              "1: the GPU's clocks are lowered for this reason.",
                              with("reason", row.reason));
    for (const Fitness verdict : kVerdicts)
      verdicts_.emplace_back(families, "lockstep_gpu_verdict",
                             "1: the agent's verdict on the GPU; absent: nobody looks.",
                             with("verdict", fitness_name(verdict)));
  }

  void show(std::optional<Fitness> verdict) {
    for (size_t i = 0; i < kVerdicts.size(); ++i)
      verdicts_[i].set(verdict ? std::optional<double>(*verdict == kVerdicts[i]) : std::nullopt);
  }

  void show(const GpuSample& sample) {
    families_.gauge("lockstep_gpu_lost", "1: the GPU fell off the bus.", labels_)
        .Set(sample.is_lost);
    for (size_t i = 0; i < kValueRows.size(); ++i) values_[i].set(sample.*kValueRows[i].value);
    for (size_t i = 0; i < kThrottleRows.size(); ++i)
      throttled_[i].set(is_throttled(sample, kThrottleRows[i].bit));
    if (sample.ecc_uncorrected_errors) show_ecc(*sample.ecc_uncorrected_errors);
    if (sample.xid_errors) show_xids(*sample.xid_errors);
  }

 private:
  static std::optional<double> is_throttled(const GpuSample& sample, unsigned long long bit) {
    if (!sample.throttle_reasons) return std::nullopt;
    return (*sample.throttle_reasons & bit) != 0 ? 1 : 0;
  }

  MetricLabels with(const char* name, const char* value) const {
    MetricLabels labels = labels_;
    labels[name] = value;
    return labels;
  }

  void show_ecc(double errors) {
    raise_to(families_.counter(
                 "lockstep_gpu_ecc_uncorrected_errors_total",
                 "Uncorrected errors in the GPU's memory since the driver was loaded.", labels_),
             errors);
  }

  void show_xids(const XidErrors& errors) {
    const auto count = [this](const char* cause, uint64_t total) {
      raise_to(
          families_.counter(
              "lockstep_gpu_xid_errors_total",
              "Errors that the driver reported (XID), by their usual cause: the GPU or a program.",
              with("cause", cause)),
          static_cast<double>(total));
    };
    count("gpu", errors.of_gpu);
    count("program", errors.of_program);
    families_.gauge("lockstep_gpu_last_xid", "Number of the last XID; 0: none.", labels_)
        .Set(static_cast<double>(errors.last));
  }

  Families& families_;
  const MetricLabels labels_;
  std::vector<OptionalGauge> values_;     // as in kValueRows
  std::vector<OptionalGauge> throttled_;  // as in kThrottleRows
  std::vector<OptionalGauge> verdicts_;   // as in kVerdicts
};

GpuProbe::GpuProbe(Families& families, const std::string& nvml_library)
    : families_(families),
      sampler_(nvml_library),
      available_(families.gauge("lockstep_nvml_available", "1: NVML shows the machine's GPUs.")),
      age_(families, "lockstep_gpu_sample_age_seconds",
           "Age of the newest NVML sample, which grows while the driver does not answer.", {}) {}

GpuProbe::~GpuProbe() = default;

void GpuProbe::refresh() {
  const GpuSamples samples = sampler_.sample();
  available_.Set(samples.is_available);
  age_.set(samples.age_seconds);
  for (size_t i = gpus_.size(); i < samples.gpus.size(); ++i)
    gpus_.push_back(std::make_unique<Gpu>(
        families_, MetricLabels{{"gpu", std::to_string(i)}, {"uuid", samples.gpus[i].uuid}}));
  for (size_t i = 0; i < samples.gpus.size(); ++i) {
    gpus_[i]->show(samples.gpus[i]);
    const auto verdict = verdicts_.find(samples.gpus[i].uuid);
    gpus_[i]->show(verdict == verdicts_.end() ? std::nullopt : std::optional(verdict->second));
  }
}

}  // namespace lockstep
