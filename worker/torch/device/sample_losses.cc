#include "worker/torch/device/sample_losses.h"

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <vector>

namespace lockstep {

SampleRows rows_of(const ModelOutput& output) {
  return {.has_weights = output.weights.defined(),
          .has_right = output.right.defined(),
          .metrics = static_cast<uint32_t>(output.metrics.size())};
}

at::Tensor sample_rows(const ModelOutput& output) {
  std::vector<at::Tensor> rows = {output.losses};
  if (output.weights.defined()) rows.push_back(output.weights);
  if (output.right.defined()) rows.push_back(output.right);
  rows.insert(rows.end(), output.metrics.begin(), output.metrics.end());
  for (at::Tensor& row : rows) row = row.detach().to(at::kFloat);
  return at::stack(rows).contiguous();
}

at::Tensor losses_gradient(const at::Tensor& losses, const SlotValues& values) {
  const double each = double{values.loss_scale} / static_cast<double>(values.step_labels);
  return at::full(losses.sizes(), static_cast<float>(each), losses.options().requires_grad(false));
}

}  // namespace lockstep
