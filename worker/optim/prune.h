// Pruning by magnitude (train.prune): when it happens, and which weights become zero.
//
// There are no masks: a pruned weight is a zero, and from train.prune.from on zeros stay zero
// (OptimizerStep::keeps_zeros). Every rank selects from its own weights, which are equal
// everywhere, so nothing is sent.
//
// Source of the schedule: Zhu and Gupta, "To prune, or not to prune" (2017), equation 1.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/base/ids.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

inline bool prunes(const wire::PruneSpec& spec) {
  return spec.sparsity() > 0;
}

// True for matrices, kernels and embeddings. Norms and biases have one dimension.
inline bool can_be_pruned(size_t dimensions) {
  return dimensions > 1;
}

// Whether the update of step `step` (0-based) keeps zeros.
inline bool keeps_zeros_at(const wire::PruneSpec& spec, Step step) {
  return prunes(spec) && step >= static_cast<Step>(spec.from());
}

// Whether weights become zero once `applied` steps are done: every train.prune.every steps after
// train.prune.from, and at train.prune.to.
bool prunes_after(const wire::PruneSpec& spec, Step applied);

// The share of zeros that they have then; train.prune.sparsity from train.prune.to on.
double sparsity_after(const wire::PruneSpec& spec, Step applied);

// Makes the floor(share * n) weights of least magnitude zero; among equal weights, the first. With
// `average`, also makes its elements at the same places zero.
void prune_smallest(float* weights, uint64_t n, double share, float* average = nullptr);

}  // namespace lockstep
