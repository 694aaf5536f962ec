// Makes what a run keeps of the meaning of its data (comm/run/job/data_legend.h).
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/data_facts.pb.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

// Class names, and the constants of `normalize` if `transforms` has it, unless there are more than
// limits::kLegendChannels. kUsage as Transform::create().
Result<wire::DataLegend> make_legend(const std::vector<std::string>& transforms,
                                     const Dataset& train);

}  // namespace lockstep::data
