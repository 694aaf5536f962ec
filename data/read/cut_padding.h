// Cuts off what nobody needs of padded documents: a batch is as wide as its longest one, in steps
// of kWidthStep tokens, so that there are few widths. What is cut off is padding only; with samples
// of about the same length in a batch (data.shuffle: length) hardly any is left.
//
// Thread-safety: a free function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/dataset/dataset.h"

namespace lockstep::data {

inline constexpr uint32_t kWidthStep = 32;  // tokens

// `inputs` and `labels`, (B, T) of these samples, become (B, T') with T' <= T, which is
// shape->tokens then. REQUIRES: shape->is_padded.
void cut_padding(const Dataset& dataset, std::span<const uint64_t> samples, std::byte* inputs,
                 int64_t* labels, SampleShape* shape);

}  // namespace lockstep::data
