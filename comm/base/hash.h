// SHA-256 if a hash is a promise (checkpoints, weights, manifests, HMAC), XXH3-128 if it only has
// to be fast (dataset fingerprints, digests of sample ids). Libraries compute both.
//
// Thread-safety: a Sha256 or Xxh3 belongs to one thread. Free functions have no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

using Digest256 = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  // The digest of the bytes so far; hashing may go on.
  Digest256 so_far() const;
  Digest256 finish();  // call once

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Digest256 sha256(std::string_view data);
Digest256 hmac_sha256(std::string_view key, std::string_view data);

// XXH3-64, for sums and tables.
uint64_t xxh3_64(std::string_view data);

// XXH3-128 as 32 hex digits.
std::string xxh3_hex(const void* data, size_t bytes);

// The same hash over pieces: equals xxh3_hex() of their concatenation.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;

  void update(const void* data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  std::string hex() const;  // of all updates so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Lower-case hex.
std::string to_hex(std::span<const uint8_t> bytes);

// Compares in a time that does not depend on the content; for secrets.
bool equal_constant_time(std::string_view a, std::string_view b);

// `bytes` bytes from the kernel's generator; for nonces, tokens and run ids.
std::string random_bytes(size_t bytes);

}  // namespace lockstep
