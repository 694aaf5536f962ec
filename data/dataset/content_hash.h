// The fingerprint of records. It uses integers only, so every machine computes the same
// fingerprint.
//
// Thread-safety: pure functions over memory that nobody writes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/base/byte_units.h"
#include "comm/base/hash.h"
#include "data/dataset/records.h"

namespace lockstep::data {

// Hashes all of `content` if it has at most `whole_bytes`. Larger content contributes its first and
// last block and 16 blocks between, at places drawn from the size.
inline constexpr uint64_t kWholeContentBytes = kGib;
void hash_sampled(std::span<const uint8_t> content, uint64_t whole_bytes, Xxh3& hash);
// The same for content that lies in pieces. `add` hashes `bytes` bytes from `offset` on.
using AddContentFn = std::function<void(uint64_t offset, uint64_t bytes)>;
void hash_sampled(uint64_t bytes, const AddContentFn& add, uint64_t whole_bytes);

// XXH3-128 over format, counts, shape, labels and content. hash_sampled() hashes the content. The
// same images stored channels-last and channels-first have different fingerprints.
std::string fingerprint_of(const Records& records, uint64_t whole_bytes = kWholeContentBytes);

}  // namespace lockstep::data
