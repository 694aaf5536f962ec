#include "worker/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "worker/optim/optimizers.h"

namespace lockstep {
namespace {

// Updates as large as adamw's (Liu et al., "Muon is Scalable for LLM Training", 2025).
constexpr double kRmsOfAdamw = 0.2;

Status check_muon(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_fraction("momentum", spec.momentum()));
  return kAdamwRow.check(spec);
}

OptimizerRule make_muon(const wire::OptimizerSpec& spec) {
  return kAdamwRow.make(spec);
}

double ratio_of_shape(const wire::OptimizerSpec& spec, const MatrixSegment& matrix) {
  const auto rows = static_cast<double>(matrix.rows);
  const auto columns = static_cast<double>(matrix.columns);
  if (spec.adjust_lr() == "original") return std::sqrt(std::max(1.0, rows / columns));
  return kRmsOfAdamw * std::sqrt(std::max(rows, columns));
}

}  // namespace

MuonFactors muon_factors(const wire::OptimizerSpec& spec, double lr, const OptimizerGroup& group,
                         const MatrixSegment& matrix) {
  const double rate = lr * group.lr_scale;
  return {.momentum = spec.momentum(),
          .is_nesterov = spec.nesterov(),
          .decay = 1 - rate * decay_of(spec, group),
          .rate = rate * ratio_of_shape(spec, matrix)};
}

// The row for the parameters that are no matrices: adamw's.
constinit const OptimizerRow kMuonRow{"muon", check_muon, make_muon};

}  // namespace lockstep
