#include "metrics/exporters/coordinator_metrics.h"

#include "metrics/exporters/build_labels.h"

namespace lockstep {

CoordinatorMetrics::CoordinatorMetrics(const std::string& run, const BuildInfo& build)
    : families_({{"run", run}}),
      build_(families_, "lockstep_build_info", "What this program was built from."),
      job_(families_),
      membership_(families_),
      journal_(families_),
      eval_(families_, "lockstep_job_"),
      checkpoint_(families_, "lockstep_job_"),
      check_(families_),
      ranks_(families_),
      process_(families_),
      tls_(families_) {
  build_.set(build_labels(build));
}

std::string CoordinatorMetrics::expose_text() {
  std::lock_guard lock(scrape_);  // two scrapes at once would raise the same counters twice
  process_.refresh();
  return families_.text();
}

}  // namespace lockstep
