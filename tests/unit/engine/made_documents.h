// Documents of a few words each, as a data set of padded or packed sequences that is made here,
// without an index. Data sets that data/formats makes of files have tests of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset/dataset.h"

namespace lockstep::testing {

// A document of n + 1 tokens has n labels, and takes n places.
using Document = std::vector<uint8_t>;

// `count` documents of 2 to `longest` tokens; the same for the same seed.
std::vector<Document> make_documents(uint32_t count, uint32_t longest, uint64_t seed = 3);

// Each by itself in a sequence of `block` tokens. REQUIRES: they fit.
std::unique_ptr<data::Dataset> padded(const std::vector<Document>& documents, uint32_t block);

// As many in a sequence as fit, in their order. REQUIRES: as padded().
std::unique_ptr<data::Dataset> packed(const std::vector<Document>& documents, uint32_t block);

}  // namespace lockstep::testing
