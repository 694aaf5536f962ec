// One sample of a replayed step.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct ReplayedSample {
  uint32_t slot = 0;
  uint64_t position = 0;  // in the epoch
  uint64_t sample = 0;    // number in the data set
  int64_t label = 0;      // of an image; for a sequence its first label
  float share = 1;        // of this label and image; below 1 if data.transforms mixed in another
  uint64_t other = 0;     // the other image's number in the data set, if share is below 1
  int64_t other_label = 0;
  float loss = 0;       // for a sequence the mean over its tokens
  std::string where{};  // file and place in the file, for people
  bool operator==(const ReplayedSample&) const = default;
};

}  // namespace lockstep
