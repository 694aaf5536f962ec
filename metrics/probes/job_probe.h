// Observes training from the coordinator's side, by the step records of the ranks.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "metrics/base/families.h"

namespace lockstep {

// One step of the surviving lineage, seen for the first time.
struct JobStep {
  Step steps_applied = 0;  // including this one
  Epoch epoch = 0;
  uint64_t samples = 0;  // of the whole step
  double seconds = 0;    // wall time of the step, on the rank that reported it
  double loss = 0;
  std::optional<double> accuracy = {};  // share of right predictions; none: is not shown
  double learning_rate = 0;
  bool skipped = false;
  std::map<std::string, double> metrics = {};  // the model's own
};

// The job's plan.
struct JobPlan {
  Step steps = 0;               // in all; 0: not known yet
  Step checkpoint_every = 0;    // 0: at the end only
  double flops_per_sample = 0;  // 0: not known
  double peak_flops = 0;        // a second, of all workers' devices; 0: not known
};

// The last ten seconds (0) or the last minute (1), as far as anything is known of them.
struct JobLately {
  std::optional<double> samples_per_second;
  std::optional<double> loss;         // mean
  std::optional<double> utilization;  // share of the ranks' time that they computed
};

// How one rank's time of one step splits, in seconds.
struct RankTimes {
  double data_wait = 0;
  double forward = 0;
  double backward = 0;
  double communication = 0;
  double optimizer = 0;
  double other = 0;
};

class JobProbe {
 public:
  explicit JobProbe(Families& families);
  void step_recorded(const JobStep& step);           // once per step
  void rank_times_recorded(const RankTimes& times);  // once per step and rank
  void rolled_back(Step steps_applied);              // the lineage now ends there
  void planned(const JobPlan& plan);
  void settings(const MetricLabels& labels);
  void set_goodput(double ratio);                     // metrics/base/goodput.h
  void lately(size_t span, const JobLately& lately);  // before each exposition

 private:
  static constexpr size_t kRankPhases = 6;

  // A value over the last ten seconds, and over the last minute.
  struct Recent {
    Recent(Families& families, const std::string& name_10s, const std::string& name_60s,
           const std::string& help);
    OptionalGauge ten_seconds;
    OptionalGauge minute;
    void set(size_t span, std::optional<double> value);
  };

  InfoMetric settings_;
  prometheus::Gauge& step_;
  prometheus::Gauge& planned_;
  prometheus::Gauge& checkpoint_interval_;
  prometheus::Gauge& epoch_;
  prometheus::Counter& steps_total_;
  prometheus::Counter& skipped_total_;
  prometheus::Histogram& seconds_;
  prometheus::Counter& samples_total_;
  Recent samples_per_second_;
  prometheus::Gauge& loss_;
  Recent recent_loss_;
  OptionalGauge accuracy_;
  NamedGauges metrics_;
  prometheus::Gauge& learning_rate_;
  std::array<prometheus::Counter*, kRankPhases> phases_{};
  prometheus::Counter& data_wait_;
  prometheus::Counter& communication_;
  Recent utilization_;
  prometheus::Gauge& goodput_;
  prometheus::Gauge& mfu_;
  JobPlan plan_;
};

}  // namespace lockstep
