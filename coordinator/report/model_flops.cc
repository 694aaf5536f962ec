#include "coordinator/report/model_flops.h"

#include "comm/run/job/models/model_table.h"

namespace lockstep::coordinator {

double flops_per_sample(const wire::ModelSpec& model) {
  const ModelRow* row = find_model(model.name());
  return row != nullptr && row->flops_per_sample != nullptr ? row->flops_per_sample(model) : 0;
}

}  // namespace lockstep::coordinator
