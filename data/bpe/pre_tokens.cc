#include "data/bpe/pre_tokens.h"

#include <algorithm>
#include <span>

#include "data/bpe/unicode_ranges.h"

namespace lockstep::data {
namespace {

enum class Kind : uint8_t { kLetter, kNumber, kBlank, kOther };

constexpr CodeRange kBlankRanges[] = {
    {0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};

bool is_in(std::span<const CodeRange> ranges, uint32_t code) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](uint32_t c, const CodeRange& r) { return c < r.first; });
  return after != ranges.begin() && code <= (after - 1)->last;
}

Kind kind_of(uint32_t code) {
  if (code < 0x80) {  // nearly all
    const uint32_t lower = code | 0x20;
    if (lower >= 'a' && lower <= 'z') return Kind::kLetter;
    if (code >= '0' && code <= '9') return Kind::kNumber;
    return code == ' ' || (code >= 0x09 && code <= 0x0d) ? Kind::kBlank : Kind::kOther;
  }
  if (is_in({kLetterRanges, kLetterRangesCount}, code)) return Kind::kLetter;
  if (is_in({kNumberRanges, kNumberRangesCount}, code)) return Kind::kNumber;
  return is_in(kBlankRanges, code) ? Kind::kBlank : Kind::kOther;
}

struct Character {
  Kind kind = Kind::kOther;
  size_t bytes = 0;
};

size_t length_of(uint8_t first) {
  return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

Character character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const size_t bytes = length_of(byte(0));
  if (bytes == 1) return {kind_of(byte(0)), 1};
  uint32_t code = byte(0) & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) code = code << 6 | (byte(i) & 0x3f);
  return {kind_of(code), bytes};
}

// The end of the run of characters of this kind that begins at `at`.
size_t end_of_run(std::string_view text, size_t at, Kind kind) {
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (character.kind != kind) break;
    at += character.bytes;
  }
  return at;
}

// The bytes of 's, 't, 're, 've, 'm, 'll or 'd at the begin; 0 if there is none.
size_t contraction_bytes(std::string_view text) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(end)) return end.size();
  return 0;
}

// A run of blanks before other text leaves its last blank to that text.
size_t blanks_bytes(std::string_view text) {
  size_t at = 0;
  size_t last = 0;  // where the last one begins
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (character.kind != Kind::kBlank) break;
    last = at;
    at += character.bytes;
  }
  return at == text.size() || last == 0 ? at : last;
}

}  // namespace

size_t pre_token_bytes(std::string_view text) {
  if (text[0] == '\'') {
    if (const size_t bytes = contraction_bytes(text); bytes > 0) return bytes;
  }
  // One space belongs to what follows it.
  const size_t begin = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Character first = character_at(text, begin);
  if (first.kind != Kind::kBlank) return end_of_run(text, begin, first.kind);
  return blanks_bytes(text);
}

bool is_blank_at(std::string_view text, size_t at) {
  return character_at(text, at).kind == Kind::kBlank;
}

}  // namespace lockstep::data
