// Chooses the weights of an export: the checkpoint's, their average (train.ema), or either with a
// share of zeros (`--prune`).
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

struct WeightChoice {
  bool is_average = false;
  double pruned = 0;  // share of every matrix and kernel, as train.prune.sparsity
  bool is_plain() const { return !is_average && pruned == 0; }
};

// Writes model.safetensors with the chosen weights into `directory`, in the checkpoint's names.
// kUsage if the checkpoint has no average.
Status write_chosen_weights(const std::string& checkpoint, const WeightChoice& choice,
                            const std::string& directory);

}  // namespace lockstep
