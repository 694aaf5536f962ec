#include "metrics/exporters/worker_metrics.h"

#include "metrics/exporters/build_labels.h"

namespace lockstep {

WorkerMetrics::WorkerMetrics(const WorkerTarget& target, const BuildInfo& build,
                             const PhaseClock& phases, const Clock& clock)
    : families_({{"run", target.run},
                 {"node", target.node},
                 {"local_rank", std::to_string(target.local_rank)}}),
      build_(families_, "lockstep_build_info", "What this program was built from."),
      step_(families_, clock),
      phase_(families_, phases, clock),
      reduction_(families_),
      member_(families_),
      eval_(families_, "lockstep_"),
      checkpoint_(families_, "lockstep_"),
      process_(families_),
      tls_(families_),
      data_(families_),
      far_data_(families_) {
  build_.set(build_labels(build));
}

void WorkerMetrics::step_applied(const AppliedStep& step) {
  step_.applied(step);
  phase_.sample();
}

std::string WorkerMetrics::expose_text() {
  std::lock_guard lock(scrape_);  // two scrapes at once would raise the same counters twice
  step_.refresh();
  phase_.refresh();
  process_.refresh();
  far_data_.refresh();
  return families_.text();
}

}  // namespace lockstep
