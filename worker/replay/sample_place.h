// Where a sample lies, for a hex dump.
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/index/dataset.h"

namespace lockstep {

struct SamplePlace {
  struct File {
    std::string path;
    uint64_t first_sample = 0;
    uint64_t first_offset = 0;  // of that sample
  };
  std::vector<File> files;     // ascending by first_sample; none of data in memory
  bool is_compressed = false;  // offsets count in what the file inflates to
  uint64_t sample_bytes = 0;   // from one sample to the next

  // REQUIRES: files is not empty.
  const File& file_of(uint64_t sample) const;
  uint64_t offset_of(uint64_t sample) const;
};

// "FILE offset N".
std::string to_text(const SamplePlace& place, uint64_t sample);

// `format`: as the dataset was opened with. REQUIRES: its samples are not encoded.
Result<SamplePlace> place_of_samples(const data::Dataset& dataset, const std::string& format);

}  // namespace lockstep
