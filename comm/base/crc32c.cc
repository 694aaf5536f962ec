#include "comm/base/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace lockstep {
namespace {

using CrcTables = std::array<std::array<uint32_t, 256>, 8>;

// [0]: what one byte makes of an empty register. [k]: followed by k zero bytes.
constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    tables[0][i] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (uint32_t i = 0; i < 256; ++i)
      tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xFF];
  }
  return tables;
}

constexpr CrcTables kCrcTables = make_crc_tables();

uint64_t word_at(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// On registers: without the complements at both ends.
uint32_t add_by_tables(uint32_t crc, const char* at, size_t bytes) {
  static_assert(std::endian::native == std::endian::little);
  for (; bytes >= 8; at += 8, bytes -= 8) {
    const uint64_t word = word_at(at) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kCrcTables[7 - k][word >> (8 * k) & 0xFF];
  }
  for (; bytes > 0; ++at, --bytes)
    crc = crc >> 8 ^ kCrcTables[0][(crc ^ static_cast<uint8_t>(*at)) & 0xFF];
  return crc;
}

#ifdef __x86_64__

constexpr size_t kStream = 1024;  // bytes of each of the three streams
constexpr size_t kCacheLine = 64;

// A register followed by kStream zero bytes. That is linear over GF(2), so the sum of what each of
// the four bytes of the register becomes.
class CrcShift {
 public:
  CrcShift() {
    const std::array<char, kStream> zeros{};
    for (uint32_t k = 0; k < 4; ++k) {
      for (uint32_t i = 0; i < 256; ++i)
        of_byte_[k][i] = add_by_tables(i << (8 * k), zeros.data(), zeros.size());
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return of_byte_[0][crc & 0xFF] ^ of_byte_[1][crc >> 8 & 0xFF] ^ of_byte_[2][crc >> 16 & 0xFF] ^
           of_byte_[3][crc >> 24];
  }

 private:
  std::array<std::array<uint32_t, 256>, 4> of_byte_;
};

__attribute__((target("sse4.2"))) uint32_t add_by_instruction(uint32_t crc, const char* at,
                                                              size_t bytes) {
  static const CrcShift shift;
  uint64_t a = crc;
  for (; bytes >= 3 * kStream; at += 3 * kStream, bytes -= 3 * kStream) {
    uint64_t b = 0;
    uint64_t c = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      // Three streams at once are too many for the processor to foresee where it has to go on.
      if (i % kCacheLine == 0) {
        for (size_t k = 3; k < 6; ++k) _mm_prefetch(at + k * kStream + i, _MM_HINT_T0);
      }
      a = _mm_crc32_u64(a, word_at(at + i));
      b = _mm_crc32_u64(b, word_at(at + kStream + i));
      c = _mm_crc32_u64(c, word_at(at + 2 * kStream + i));
    }
    const uint32_t two = shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b);
    a = shift(two) ^ static_cast<uint32_t>(c);
  }
  for (; bytes >= 8; at += 8, bytes -= 8) a = _mm_crc32_u64(a, word_at(at));
  auto rest = static_cast<uint32_t>(a);
  for (; bytes > 0; ++at, --bytes) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*at));
  return rest;
}

bool has_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

#endif

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  return extend_crc32c(0, bytes);
}

uint32_t extend_crc32c(uint32_t crc, std::string_view more) {
#ifdef __x86_64__
  if (has_instruction()) return ~add_by_instruction(~crc, more.data(), more.size());
#endif
  return extend_crc32c_by_tables(crc, more);
}

uint32_t extend_crc32c_by_tables(uint32_t crc, std::string_view more) {
  return ~add_by_tables(~crc, more.data(), more.size());
}

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u;
}

}  // namespace lockstep
