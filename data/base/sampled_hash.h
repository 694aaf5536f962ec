// Hashes content whole if it is small, and in places if it is large.
//
// Thread-safety: pure functions over memory that does not change.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "comm/base/byte_units.h"
#include "comm/base/hash.h"

namespace lockstep::data {

// Hashes all of `content` if it has at most `whole_bytes`. Larger content contributes its first and
// last block and 16 blocks between, at places drawn from the size.
inline constexpr uint64_t kWholeContentBytes = kGib;
void hash_sampled(std::span<const uint8_t> content, uint64_t whole_bytes, Xxh3& hash);
// The same for content that lies in pieces. `add` hashes `bytes` bytes from `offset` on.
using AddContentFn = std::function<void(uint64_t offset, uint64_t bytes)>;
void hash_sampled(uint64_t bytes, const AddContentFn& add, uint64_t whole_bytes);

}  // namespace lockstep::data
