// Any bytes as a tokenizer.json, as a pair vocab.json and merges.txt, and as text for a vocabulary:
// refused, or tokens that the vocabulary has and that make the text again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/base/text/utf8.h"
#include "data/bpe/encoder.h"
#include "data/bpe/pre_tokens.h"

namespace lockstep::data {
namespace {

// All bytes, and a few merges that overlap.
const BpeVocabulary& small_vocabulary() {
  static const BpeVocabulary made = [] {
    std::string json = "{";
    uint32_t id = 0;
    uint32_t others = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool is_itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
      const uint32_t code = is_itself ? byte : others++;
      char text[16];
      std::snprintf(text, sizeof text, "\"\\u%04x\":", code);
      json += text + std::to_string(id++) + ",";
    }
    for (const char* token : {"aa", "aaaa", "ab", "aab", "\\u0120a", "\\u0120\\u0120"})
      json += "\"" + std::string(token) + "\":" + std::to_string(id++) + ",";
    json.back() = '}';
    return std::move(
               parse_vocabulary("small", json, "a a\naa aa\na b\naa b\n\u0120 a\n\u0120 \u0120\n"))
        .value();
  }();
  return made;
}

std::vector<uint32_t> encoded(const BpeVocabulary& vocabulary, std::string_view text) {
  BpeEncoder encoder(vocabulary);
  std::vector<uint32_t> tokens;
  encoder.encode(text, tokens);
  LOCKSTEP_CHECK(tokens.size() <= text.size(), "a token is a byte or more");
  for (const uint32_t token : tokens)
    LOCKSTEP_CHECK(token < vocabulary.size(), "a token is one of the vocabulary");
  std::vector<uint32_t> again;
  encoder.encode(text, again);
  LOCKSTEP_CHECK(again == tokens, "what is remembered says the same");
  return tokens;
}

// The text of tokens of the small vocabulary.
std::string text_of(const std::vector<uint32_t>& tokens) {
  const char* const merged[] = {"aa", "aaaa", "ab", "aab", " a", "  "};
  std::string text;
  for (const uint32_t token : tokens)
    text += token < 256 ? std::string(1, static_cast<char>(token)) : merged[token - 256];
  return text;
}

void try_text(std::string_view text) {
  const auto bad = find_no_utf8(text);
  LOCKSTEP_CHECK(!bad || *bad < text.size(), "a place lies within the text");
  if (bad) text = text.substr(0, *bad);
  LOCKSTEP_CHECK(!find_no_utf8(text), "what lies before it is UTF-8");
  LOCKSTEP_CHECK(text_of(encoded(small_vocabulary(), text)) == text, "tokens are the text again");
}

void try_vocabulary(std::string_view json, std::string_view merges) {
  const auto vocabulary = parse_vocabulary("fuzz", json, merges);
  if (!vocabulary.is_ok()) {
    LOCKSTEP_CHECK(
        vocabulary.status().code() == Code::kBadData || vocabulary.status().code() == Code::kUsage,
        "damage is bad data, another kind a wrong choice");
    return;
  }
  LOCKSTEP_CHECK(vocabulary->size() <= limits::kVocabulary, "a vocabulary has a limit");
  encoded(*vocabulary,
          "We've said  it: aaaaaaab <|endoftext|> two words.\n\n\xc3\xa4 \xe6\x97\xa5");
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  lockstep::data::try_text(bytes);
  lockstep::data::try_vocabulary(bytes, "");
  if (const size_t zero = bytes.find('\0'); zero != std::string_view::npos)
    lockstep::data::try_vocabulary(bytes.substr(0, zero), bytes.substr(zero + 1));
  return 0;
}
