// Compares the scores and the speed of models on the same batches.
//
// Batches come spread over the data, so that a part of them is a fair part: data are often in the
// order of their classes. Sums follow the order of the data, as in the run's evaluation, so over
// all data they have the same bits.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "comm/base/status.h"
#include "worker/inference/use_data.h"
#include "worker/torch/inference/open_model.h"

namespace lockstep {

struct MeasureLimits {
  uint64_t batch = 1;   // samples
  double seconds = 60;  // no new batch after them; one batch is always looked at
};

// {"samples", "of", "models": [{"loss", "accuracy", "samples_per_second"}]}, by model; no accuracy
// if the loss does not know right predictions. kBadData for a label that is no class of a model;
// LibTorch's exceptions pass through.
Result<nlohmann::ordered_json> measure_models(const std::vector<const OpenModel*>& models,
                                              UsedData& data, const MeasureLimits& limits);

// The `visit`-th of `batches` batches. Every batch has its turn once.
uint64_t spread_batch(uint64_t visit, uint64_t batches);

}  // namespace lockstep
