// The letters that stand for bytes in GPT-2's vocabulary files. A printable byte stands for itself.
// The characters from U+0100 on stand for the other bytes, in their order.
//
// Source: openai/gpt-2, src/encoder.py, bytes_to_unicode().
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::data {

inline bool stands_for_itself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
         (byte >= 0xae && byte <= 0xff);
}

// The byte for a text that is exactly one of these letters, in UTF-8.
inline std::optional<uint8_t> byte_of_letter(const std::string& text) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint32_t code = 0;
  if (text.size() == 1 && byte_at(0) < 0x80)
    code = byte_at(0);
  else if (text.size() == 2 && (byte_at(0) & 0xe0) == 0xc0 && (byte_at(1) & 0xc0) == 0x80)
    code = (byte_at(0) & 0x1fU) << 6 | (byte_at(1) & 0x3fU);
  else
    return std::nullopt;
  if (code < 0x100)
    return stands_for_itself(code) ? std::optional(static_cast<uint8_t>(code)) : std::nullopt;
  uint32_t letter = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte)
    if (!stands_for_itself(byte) && letter++ == code) return static_cast<uint8_t>(byte);
  return std::nullopt;
}

// The bytes for a text in UTF-8 that has only such letters.
inline std::optional<std::string> bytes_of_letters(const std::string& text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const size_t letter = static_cast<uint8_t>(text[at]) < 0x80 ? 1 : 2;
    const auto byte = byte_of_letter(text.substr(at, letter));
    if (!byte) return std::nullopt;
    bytes.push_back(static_cast<char>(*byte));
    at += letter;
  }
  return bytes;
}

}  // namespace lockstep::data
