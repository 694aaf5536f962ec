// Thread-safety: a value.
#pragma once

#include <cstdint>

namespace lockstep::data {

// For tokens with documents kept apart.
struct DocumentCounts {
  uint64_t documents = 0;
  uint64_t too_short = 0;    // left out: a document with one token or none has nothing to predict
  uint64_t pieces = 0;       // of documents, none longer than a sequence
  uint64_t predictions = 0;  // in all samples; the other labels are padding
};

}  // namespace lockstep::data
