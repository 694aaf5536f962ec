// The fingerprint of records. It uses integers only, so every machine computes the same
// fingerprint.
//
// Thread-safety: pure functions over memory that does not change.
#pragma once

#include <cstdint>
#include <string>

#include "data/base/sampled_hash.h"
#include "data/dataset/records.h"

namespace lockstep::data {

// XXH3-128 over format, counts, shape, labels and content. hash_sampled() hashes the content. The
// same images stored channels-last and channels-first have different fingerprints.
std::string fingerprint_of(const Records& records, uint64_t whole_bytes = kWholeContentBytes);

}  // namespace lockstep::data
