#include "comm/run/job/metric_names.h"

#include "comm/base/text/printable.h"

namespace lockstep {

Status check_metrics(const std::vector<std::string>& names) {
  if (names.size() > kMetricsOfAModel)
    return {Code::kUsage, "gives " + std::to_string(names.size()) +
                              " metrics; Lockstep takes at most " +
                              std::to_string(kMetricsOfAModel) + ": leave some out"};
  for (const std::string& name : names)
    if (!is_metric_name(name))
      return {Code::kUsage, "gives a metric named \"" + printable(name) + "\"; a name has 1 to " +
                                std::to_string(kMetricNameBytes) +
                                " letters from a to z and A to Z, digits, '_', '.', '-' and '/'"};
  return Status::ok();
}

}  // namespace lockstep
