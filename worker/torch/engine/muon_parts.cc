#include "worker/torch/engine/muon_parts.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "worker/torch/device/muon_update.h"
#include "worker/torch/engine/hidden_matrices.h"

namespace lockstep {

Result<MuonParts> muon_parts(const wire::JobSpec& job, const Model& model, const FlatLayout& layout,
                             const data::Dataset& train) {
  MuonParts parts;
  if (!is_muon(job.optimizer())) return parts;
  parts.is_matrix = find_hidden_matrices(model, job.model(), train.shape(),
                                         outputs_of(job.train(), train.shape(), train.classes()));
  for (size_t i = 0; i < parts.is_matrix.size(); ++i)
    parts.is_matrix[i] = parts.is_matrix[i] && layout.is_trained(i);
  if (std::ranges::find(parts.is_matrix, true) == parts.is_matrix.end())
    return Status(Code::kUsage,
                  "optimizer.name is muon, which updates the matrices of hidden layers, but "
                  "model.name " +
                      job.model().name() +
                      " trains none (filters, embeddings and the output layer are no such "
                      "matrices); set optimizer.name to adamw or sgd");
  parts.update = [spec = job.optimizer()](
                     std::span<const MatrixSegment> matrices, const OptimizerStep& step,
                     std::span<const OptimizerGroup> groups, const MatrixBuffers& buffers) {
    update_matrices(spec, at::kCPU, matrices, step, groups, buffers);
  };
  return parts;
}

}  // namespace lockstep
