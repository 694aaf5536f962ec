// The scores of batches, added up as an evaluation of the run adds them.
//
// Thread-safety: free functions. LibTorch's exceptions pass through.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/inference/score_parts.h"
#include "worker/torch/inference/use_words.h"

namespace lockstep {

// The scores of a part without batches.
PartScores begin_scores(const ModelAndData& opened);

// `batch`: as read, with the model's labels.
void add_batch(const OpenModel& model, const UsedBatch& batch, uint64_t samples, PartScores* part);

}  // namespace lockstep
