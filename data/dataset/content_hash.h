// The fingerprint of records. It reads integers only, so that it is the same on every machine.
//
// Thread-safety: pure functions over memory that nobody writes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/base/hash.h"
#include "data/dataset/records.h"

namespace lockstep::data {

// Hashes all of `content` up to `whole_bytes`, beyond that the first and last block and 16 between,
// at places drawn from the size.
inline constexpr uint64_t kWholeContentBytes = uint64_t{1} << 30;
void hash_sampled(std::span<const uint8_t> content, uint64_t whole_bytes, Xxh3& hash);
// The same of content that lies in pieces: `add` hashes so many bytes from an offset on.
using AddContentFn = std::function<void(uint64_t offset, uint64_t bytes)>;
void hash_sampled(uint64_t bytes, const AddContentFn& add, uint64_t whole_bytes);

// XXH3-128 over format, counts, shape, labels and content, this by hash_sampled(). Images stored
// channels-last are other records than the same ones channels-first.
std::string fingerprint_of(const Records& records, uint64_t whole_bytes = kWholeContentBytes);

}  // namespace lockstep::data
