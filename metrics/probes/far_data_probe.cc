#include "metrics/probes/far_data_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <utility>

namespace lockstep {

void FarDataProbe::watch(std::function<FarDataCounts()> counts) {
  const std::lock_guard lock(mutex_);
  counts_ = std::move(counts);
}

void FarDataProbe::refresh() {
  const std::lock_guard lock(mutex_);
  if (!counts_) return;
  const FarDataCounts now = counts_();
  const auto raise = [&](const char* name, const char* help, double total,
                         const MetricLabels& labels = {}) {
    raise_to(families_.counter(name, help, labels), total);
  };
  const char* const reads = "lockstep_far_data_reads_total";
  const char* const reads_help =
      "Pieces of remote data that were needed, by whether the cache held them.";
  raise(reads, reads_help, static_cast<double>(now.reads_near), {{"from", "cache"}});
  raise(reads, reads_help, static_cast<double>(now.reads_far), {{"from", "source"}});
  raise("lockstep_far_data_fetched_bytes_total",
        "Bytes that came from the source, those read ahead included.",
        static_cast<double>(now.fetched_bytes));
  raise("lockstep_far_data_fetch_seconds_total", "Time of all requests to the source, added up.",
        now.fetch_seconds);
  families_
      .gauge("lockstep_far_data_cache_bytes",
             "Size of the cache of remote data on this machine's disk, for all processes.")
      .Set(static_cast<double>(now.kept_bytes));
}

}  // namespace lockstep
