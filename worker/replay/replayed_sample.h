// One sample of a step that was computed again.
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct ReplayedSample {
  uint32_t slot = 0;
  uint64_t position = 0;  // in the epoch
  uint64_t sample = 0;    // number in the data set
  int64_t label = 0;      // of an image; of a sequence the first one
  float share = 1;        // of it and of the image, which data.transforms mixed with another
  uint64_t other = 0;     // number of that; as the label, where share is less than 1
  int64_t other_label = 0;
  float loss = 0;       // of a sequence the mean over its tokens
  std::string where{};  // file and place in it, for people
  bool operator==(const ReplayedSample&) const = default;
};

}  // namespace lockstep
