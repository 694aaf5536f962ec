// The code points that are letters (general category L) and numbers (N), as ranges in rising order.
//
// Thread-safety: constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::data {

struct CodeRange {
  uint32_t first;
  uint32_t last;  // inclusive
};

extern const CodeRange kLetterRanges[];
extern const size_t kLetterRangesCount;
extern const CodeRange kNumberRanges[];
extern const size_t kNumberRangesCount;

}  // namespace lockstep::data
