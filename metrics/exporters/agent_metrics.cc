#include "metrics/exporters/agent_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <utility>

#include "metrics/exporters/build_labels.h"

namespace lockstep {

AgentMetrics::AgentMetrics(const AgentTarget& target, const BuildInfo& build)
    : families_({{"run", target.run}, {"node", target.node}}),
      build_(families_, "lockstep_build_info", "What this program was built from."),
      node_(families_, target.run_dir),
      gpus_(families_, target.nvml_library),
      process_(families_),
      tls_(families_),
      living_(families_.gauge("lockstep_agent_workers", "Workers of this agent that live.")),
      deaths_(families_.counter("lockstep_agent_worker_deaths_total",
                                "Workers of this agent that died, without those told to stop.")) {
  build_.set(build_labels(build));
}

void AgentMetrics::workers(uint64_t living, uint64_t deaths) {
  std::lock_guard lock(scrape_);
  living_.Set(static_cast<double>(living));
  raise_to(deaths_, static_cast<double>(deaths));
}

void AgentMetrics::verdicts(std::map<std::string, Fitness> of_gpus) {
  std::lock_guard lock(scrape_);
  gpus_.judge(std::move(of_gpus));
}

std::string AgentMetrics::expose_text() {
  std::lock_guard lock(scrape_);  // two scrapes at once would raise the same counters twice
  node_.refresh();
  gpus_.refresh();
  process_.refresh();
  return families_.text();
}

}  // namespace lockstep
