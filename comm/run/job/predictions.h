// The number of predictions that a model makes of one sample: one of an image, one at every token
// of a sequence. It converts between counts of samples and counts of right predictions.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

#include "comm/run/job/data_formats.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/job/models/model_table.h"

namespace lockstep {

// True if the model is the user's own file: model.path.
inline bool is_from_file(const wire::ModelSpec& model) {
  const ModelRow* row = find_model(model.name());
  return row != nullptr && row->is_from_file;
}

// True if a process in Python trains it, with a loop of its own.
inline bool is_script(const wire::ModelSpec& model) {
  const ModelRow* row = find_model(model.name());
  return row != nullptr && row->is_script;
}

// True if the model can learn from tokens.
inline bool may_take_tokens(const wire::ModelSpec& model) {
  const ModelRow* row = find_model(model.name());
  return row != nullptr && row->takes != ModelTakes::kImages;
}

// True if the model learns from tokens, whatever the training data are.
inline bool learns_from_tokens(const wire::ModelSpec& model) {
  const ModelRow* row = find_model(model.name());
  return row != nullptr && row->takes == ModelTakes::kTokens;
}

// True if the data are tokens. For tokens the loss and its perplexity say more than the share of
// right predictions. REQUIRES: the job is resolved.
inline bool predicts_tokens(const wire::JobSpec& job) {
  return is_token_format(job.data().train().format());
}

// REQUIRES: the job is resolved.
inline uint64_t predictions_per_sample(const wire::ModelSpec& model) {
  return may_take_tokens(model) && model.block() > 0 ? model.block() : 1;
}

}  // namespace lockstep
