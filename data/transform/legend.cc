#include "data/transform/legend.h"

#include "comm/base/limits.h"
#include "comm/run/job/data_legend.h"
#include "data/transform/normalize.h"
#include "data/transform/transform_list.h"

namespace lockstep::data {

Result<wire::DataLegend> make_legend(const std::vector<std::string>& transforms,
                                     const Dataset& train) {
  wire::DataLegend legend;
  set_class_names(train.class_names(), legend);
  set_columns(train.column_names(), legend);
  LOCKSTEP_ASSIGN_OR_RETURN(const TransformList list, parse_transforms(transforms));
  const auto& statistics = train.statistics();
  if (!list.normalizes || statistics.size() > limits::kLegendChannels) return legend;
  for (const ChannelStatistics& channel : statistics) {
    const NormalizeScale scale = normalize_scale(channel);
    legend.add_mean(scale.mean);
    legend.add_std(scale.std);
  }
  return legend;
}

}  // namespace lockstep::data
