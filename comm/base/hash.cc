#include "comm/base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <xxhash.h>

#include <cerrno>

#include "comm/base/check.h"

namespace lockstep {

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  Impl() { LOCKSTEP_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1, "SHA-256"); }
  ~Impl() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {}
Sha256::~Sha256() = default;

void Sha256::update(const void* data, size_t bytes) {
  LOCKSTEP_CHECK(EVP_DigestUpdate(impl_->context, data, bytes) == 1, "SHA-256 update");
}

Digest256 Sha256::so_far() const {
  Sha256 copy;
  LOCKSTEP_CHECK(EVP_MD_CTX_copy_ex(copy.impl_->context, impl_->context) == 1, "SHA-256 copy");
  return copy.finish();
}

Digest256 Sha256::finish() {
  Digest256 digest;
  LOCKSTEP_CHECK(EVP_DigestFinal_ex(impl_->context, digest.data(), nullptr) == 1, "SHA-256 final");
  return digest;
}

Digest256 sha256(std::string_view data) {
  Sha256 hash;
  hash.update(data);
  return hash.finish();
}

Digest256 hmac_sha256(std::string_view key, std::string_view data) {
  Digest256 digest;
  unsigned int size = 0;
  const unsigned char* out =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(data.data()), data.size(), digest.data(), &size);
  LOCKSTEP_CHECK(out != nullptr && size == digest.size(), "HMAC-SHA-256");
  return digest;
}

uint64_t xxh3_64(std::string_view data) {
  return XXH3_64bits(data.data(), data.size());
}

std::string xxh3_hex(const void* data, size_t bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
  return to_hex(canonical.digest);
}

struct Xxh3::Impl {
  XXH3_state_t* state = XXH3_createState();
  Impl() { LOCKSTEP_CHECK(state != nullptr && XXH3_128bits_reset(state) == XXH_OK, "XXH3"); }
  ~Impl() { XXH3_freeState(state); }
};

Xxh3::Xxh3() : impl_(std::make_unique<Impl>()) {}
Xxh3::~Xxh3() = default;

void Xxh3::update(const void* data, size_t bytes) {
  LOCKSTEP_CHECK(XXH3_128bits_update(impl_->state, data, bytes) == XXH_OK, "XXH3 update");
}

std::string Xxh3::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(impl_->state));
  return to_hex(canonical.digest);
}

std::string to_hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool equal_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(size_t bytes) {
  std::string out(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::getrandom(out.data() + done, bytes - done, 0);
    if (n < 0 && errno == EINTR) continue;
    LOCKSTEP_CHECK(n > 0, "getrandom");
    done += static_cast<size_t>(n);
  }
  return out;
}

}  // namespace lockstep
