// Shows ranks side by side, as the coordinator sees them. It helps to find the rank that holds the
// others up, also if Prometheus does not scrape the workers.
//
// Up to limits::kRanksShown ranks, each has series of its own. Beyond that number, a family shows
// the limits::kWorstRanksShown ranks with the highest values; for all families high is bad. Lowest,
// median and highest values are there for any number of ranks.
//
// Thread-safety: show() by one thread at a time, also during a scrape.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metrics/base/families.h"

namespace lockstep {

// Over the last seconds.
struct RankTimesLately {
  std::optional<double> slot_seconds;     // the rank's own work for one slot; none: no step yet
  std::optional<double> data_wait_ratio;  // of the rank's time in steps
};

struct RankSample {
  uint32_t rank = 0;
  std::string node;
  uint32_t local_rank = 0;
  RankTimesLately ten_seconds;
  RankTimesLately minute;
  double silence_seconds = 0;  // since the coordinator last heard of the rank
};

class RankProbe {
 public:
  explicit RankProbe(Families& families);
  // Replaces the shown ranks.
  void show(const std::vector<RankSample>& ranks);

 private:
  struct Value {
    const RankSample* of = nullptr;
    double value = 0;
  };

  // One measurement of all ranks.
  class Measure {
   public:
    // Named lockstep_rank_NAME and lockstep_job_ranks_NAME.
    Measure(Families& families, const std::string& name, const std::string& what);
    void show(std::vector<Value> values);

   private:
    static MetricLabels labels_of(const RankSample& rank);
    void show_some(const std::vector<Value>& values);

    prometheus::Family<prometheus::Gauge>& each_;
    std::map<MetricLabels, prometheus::Gauge*> shown_;
    OptionalGauge lowest_;
    OptionalGauge median_;
    OptionalGauge highest_;
  };

  Measure slot_seconds_;  // these two: of the last minute
  Measure data_wait_ratio_;
  Measure recent_slot_seconds_;
  Measure recent_data_wait_ratio_;
  Measure silence_seconds_;
};

}  // namespace lockstep
