// Top-5 accuracy of a batch.
//
// Errors: LibTorch's exceptions pass through.
// Thread-safety: pure functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lockstep {

inline constexpr int64_t kTopClasses = 5;
inline constexpr int64_t kFewestClassesForTop = 10;

// How many rows of `logits` (..., classes) have their label among the kTopClasses largest logits.
// On a tie the first class counts, as for the largest one. A logit that is no number comes before
// all others. `labels`: one a row, on the host; a row without a label (comm/base/labels.h) does not
// count.
uint64_t count_in_top(const at::Tensor& logits, const int64_t* labels);

}  // namespace lockstep
