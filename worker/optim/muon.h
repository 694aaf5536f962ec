// The part of Muon (optimizer.name muon) that needs no LibTorch. It orthogonalises the momentum of
// a matrix. The other parameters are updated by adamw with the same learning rate and decay.
//
// Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024). Order
// and precision are as in torch.optim.Muon; worker/torch/device/muon_update.h has the arithmetic.
//
// A matrix is never cut: every rank updates all matrices whole, from sums that are equal on all
// ranks.
//
// Thread-safety: values and pure functions of their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "comm/run/job/job.pb.h"
#include "worker/optim/optimizer_row.h"

namespace lockstep {

inline bool is_muon(const wire::OptimizerSpec& spec) {
  return spec.name() == "muon";
}

// The state of a matrix, in the first flat buffer of the optimizer's state. The second buffer is
// not touched at matrices.
inline constexpr char kMuonMomentum[] = "momentum_buffer";

// A row-major matrix from element `start` of the flat buffers.
struct MatrixSegment {
  uint64_t start = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  uint32_t group = 0;
  bool is_pruned = false;  // zeros stay zero while OptimizerStep::keeps_zeros
};

struct MatrixBuffers {
  float* params = nullptr;
  float* momentum = nullptr;
  const float* grads = nullptr;
};

// The numbers of one matrix in one step, in double as in PyTorch.
struct MuonFactors {
  double momentum = 0;
  bool is_nesterov = false;
  double decay = 1;  // 1 - lr * weight_decay
  double rate = 0;   // of the orthogonal matrix: lr, adjusted to the shape
};
MuonFactors muon_factors(const wire::OptimizerSpec& spec, double lr, const OptimizerGroup& group,
                         const MatrixSegment& matrix);

// Updates the matrices of a step in place, each with the settings of its group.
using MatrixUpdate = std::function<void(std::span<const MatrixSegment>, const OptimizerStep&,
                                        std::span<const OptimizerGroup>, const MatrixBuffers&)>;

}  // namespace lockstep
