// The settings that optimizer.groups gives each parameter of a model, by its name.
//
// Thread-safety: a pure function and values.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/model/spec.h"
#include "worker/optim/optimizer_row.h"

namespace lockstep {

struct ParameterGroups {
  std::vector<OptimizerGroup> table;  // different settings, at most limits::kUpdateGroups
  std::vector<uint32_t> group_of;     // by parameter: index in the table
  std::vector<bool> frozen;           // by parameter; empty: none is
};

// The first map of optimizer.groups that matches a parameter holds; optimizer.spare_vectors takes
// weight decay off vectors in every group.
// kUsage if a pattern matches no parameter, if there are more different settings than a kernel
// takes, or if nothing is left to train.
Result<ParameterGroups> resolve_groups(const ModelLayout& model, const wire::OptimizerSpec& spec);

}  // namespace lockstep
