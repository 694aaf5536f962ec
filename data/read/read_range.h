// Samples in their natural order, for evaluation.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>

#include "data/index/dataset.h"
#include "data/transform/normalize.h"

namespace lockstep::data {

// Samples [begin, end) into `images` ((end - begin) * shape.elements() floats) and `labels`.
// REQUIRES: begin <= end <= dataset.samples(); `transform` made for as many channels.
void read_range(const Dataset& dataset, const Transform& transform, uint64_t begin, uint64_t end,
                float* images, int64_t* labels);

}  // namespace lockstep::data
