// Functions that the rows of the formats of encoded images share.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <string>

#include "data/dataset/format_row.h"
#include "data/formats/images/encoded_source.h"

namespace lockstep::data {

// Whether find() finds other files for evaluation than for training, whatever the columns.
template <auto find>
bool encoded_has_eval(const std::string& path) {
  const auto train = find({path, Split::kTrain, {}, nullptr, {}});
  const auto eval = find({path, Split::kEval, {}, nullptr, {}});
  if (!eval.is_ok()) return false;
  return !train.is_ok() || train->directory != eval->directory || train->names != eval->names;
}

}  // namespace lockstep::data
