// Cuts padding off a batch of padded documents: the batch becomes as wide as its longest document,
// rounded up to kWidthStep tokens so that there are few widths. If the samples of a batch have
// about the same length (data.shuffle: length), hardly any padding is left.
//
// Thread-safety: a free function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/dataset/dataset.h"

namespace lockstep::data {

inline constexpr uint32_t kWidthStep = 32;  // tokens

// Turns `inputs` and `labels` of these samples from (B, T) into (B, T'), T' <= T, and sets
// shape->tokens to T'. REQUIRES: shape->is_padded.
void cut_padding(const As<Sequences>& sequences, std::span<const uint64_t> samples,
                 std::byte* inputs, int64_t* labels, SampleShape* shape);
// The same of samples [begin, end). Does nothing unless shape->is_padded.
void cut_padding(const Dataset& data, uint64_t begin, uint64_t end, std::byte* inputs,
                 int64_t* labels, SampleShape* shape);

}  // namespace lockstep::data
