// Where a sample of an IDX file lies, for a hex dump.
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "data/index/dataset.h"

namespace lockstep {

struct SamplePlace {
  std::string file;
  bool is_compressed = false;  // `offset` counts in what it inflates to
  uint64_t first_offset = 0;   // of sample 0
  uint64_t sample_bytes = 0;
  uint64_t offset_of(uint64_t sample) const { return first_offset + sample * sample_bytes; }
};

Result<SamplePlace> place_of_samples(const data::Dataset& dataset);

}  // namespace lockstep
