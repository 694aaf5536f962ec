// Rows of ids (SampleShape::id_bytes), as they are stored, become what a model gets.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::data {

// Writes shape.channels ids. `stored`: shape.stored_bytes(), at any address. False if an id is
// below 0 or beyond int64. REQUIRES: shape.has_ids().
bool read_id_row(const uint8_t* stored, const SampleShape& shape, int64_t* out);

// "rows of 128 ids, 4 bytes each"
std::string ids_text(const SampleShape& shape);

// kBadData for a sample that read_id_row() refuses. `sample` says which one, and its file.
Status refused_ids(const std::string& sample);

}  // namespace lockstep::data
