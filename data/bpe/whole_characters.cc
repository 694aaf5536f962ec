#include "data/bpe/whole_characters.h"

#include <cstdint>

namespace lockstep::data {
namespace {

constexpr size_t kMostBytes = 4;  // of a character

// The bytes of the character that begins with this one; 0: none does.
size_t wanted_bytes(char first) {
  const auto byte = static_cast<uint8_t>(first);
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}

// How many bytes at the end may be the beginning of a character.
size_t unfinished_bytes(std::string_view text) {
  for (size_t back = 1; back < kMostBytes && back <= text.size(); ++back) {
    const char byte = text[text.size() - back];
    if ((static_cast<uint8_t>(byte) & 0xc0) == 0x80) continue;  // inside of one
    return wanted_bytes(byte) > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string WholeCharacters::add(std::string_view bytes) {
  kept_ += bytes;
  const size_t rest = unfinished_bytes(kept_);
  std::string ready = kept_.substr(0, kept_.size() - rest);
  kept_.erase(0, ready.size());
  return ready;
}

}  // namespace lockstep::data
