// Tokens back to text: the bytes of the tokens of any text are the text, and a stream of them is
// shown in whole characters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "comm/base/text/utf8.h"
#include "data/bpe/encoder.h"
#include "data/bpe/whole_characters.h"
#include "tests/unit/data/samples/bpe_samples.h"

namespace lockstep::data {
namespace {

BpeVocabulary to_decode() {
  auto made = parse_vocabulary("tokenizer.json", bpe_sample("tokenizer.json"), "");
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return std::move(made).value();
}

std::string decoded(const BpeVocabulary& vocabulary, std::string_view text) {
  std::vector<uint32_t> tokens;
  BpeEncoder(vocabulary).encode(text, tokens);
  std::string bytes;
  for (const uint32_t token : tokens) bytes += vocabulary.bytes_of(token);
  return bytes;
}

// UTF-8 of any characters, short and long.
std::string text_of(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (const uint32_t number : numbers) {
    const uint32_t code = number % 0x110000;
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    } else if (code < 0x10000) {
      if (code >= 0xd800 && code < 0xe000) continue;
      text += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
               static_cast<char>(0x80 | (code & 0x3f))};
    } else {
      text +=
          {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3f)),
           static_cast<char>(0x80 | (code >> 6 & 0x3f)), static_cast<char>(0x80 | (code & 0x3f))};
    }
  }
  return text;
}

TEST(BpeDecoding, EveryByteIsTheByteOfItsToken) {
  const BpeVocabulary vocabulary = to_decode();
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_EQ(vocabulary.bytes_of(vocabulary.token_of_byte(static_cast<uint8_t>(byte))),
              std::string(1, static_cast<char>(byte)));
}

TEST(BpeDecoding, TheSamplesOfOtherLibrariesComeBack) {
  const BpeVocabulary vocabulary = to_decode();
  int samples = 0;
  for (const auto& [name, hex] : kBpeSamples) {
    if (!name.starts_with("text ")) continue;
    EXPECT_EQ(decoded(vocabulary, bpe_sample(name)), bpe_sample(name)) << name;
    ++samples;
  }
  EXPECT_GT(samples, 15);
}

TEST(BpeDecoding, ANumberThatIsNoTokenHasNoBytes) {
  const BpeVocabulary vocabulary = to_decode();
  EXPECT_TRUE(vocabulary.bytes_of(vocabulary.size()).empty());
}

RC_GTEST_PROP(BpeDecoding, AnyTextComesBack, (const std::vector<uint32_t>& numbers)) {
  static const BpeVocabulary vocabulary = to_decode();
  const std::string text = text_of(numbers);
  RC_ASSERT(is_utf8(text));
  RC_ASSERT(decoded(vocabulary, text) == text);
}

RC_GTEST_PROP(WholeCharacters, LoseNoByteAndCutNoCharacter,
              (const std::vector<uint32_t>& numbers, const std::string& noise)) {
  const std::string text = text_of(numbers);
  for (const std::string& bytes : {text, noise + text + noise}) {
    WholeCharacters characters;
    std::string seen;
    for (const char byte : bytes) {
      const std::string ready = characters.add({&byte, 1});
      if (bytes == text) RC_ASSERT(is_utf8(ready));
      seen += ready;
    }
    RC_ASSERT(seen + characters.finish() == bytes);
  }
}

TEST(WholeCharacters, WhatCanBeNoCharacterIsReadyAtOnce) {
  WholeCharacters characters;
  EXPECT_EQ(characters.add("\xff"), "\xff");
  EXPECT_EQ(characters.add("a\xe2\x82"), "a");
  EXPECT_EQ(characters.add("\xac"), "\xe2\x82\xac");
  EXPECT_EQ(characters.add("\xc3"), "");
  EXPECT_EQ(characters.add("x"), "\xc3x");
  EXPECT_EQ(characters.finish(), "");
}

}  // namespace
}  // namespace lockstep::data
