// Text to tokens, compared with those that Hugging Face's tokenizers and OpenAI's tiktoken make
// (bpe_samples.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "comm/base/text/utf8.h"
#include "data/bpe/encoder.h"
#include "data/bpe/pre_tokens.h"
#include "tests/unit/data/samples/bpe_samples.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;

BpeVocabulary whole() {
  auto made = parse_vocabulary("tokenizer.json", bpe_sample("tokenizer.json"), "");
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return std::move(made).value();
}

BpeVocabulary pair() {
  auto made = parse_vocabulary("vocab.json", bpe_sample("vocab.json"), bpe_sample("merges.txt"));
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return std::move(made).value();
}

std::vector<std::string> names_of_texts() {
  std::vector<std::string> names;
  for (const auto& [name, hex] : kBpeSamples)
    if (name.starts_with("text ")) names.push_back(name.substr(5));
  return names;
}

std::vector<uint32_t> wanted(const std::string& kind, const std::string& name) {
  const std::string bytes = bpe_sample(kind + " " + name);
  std::vector<uint32_t> tokens(bytes.size() / 4);
  if (!tokens.empty()) std::memcpy(tokens.data(), bytes.data(), bytes.size());
  return tokens;
}

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    pieces.emplace_back(text.substr(0, pre_token_bytes(text)));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

TEST(BpeEncoder, MakesTheTokensOfOtherLibraries) {
  const BpeVocabulary of_whole = whole();
  const BpeVocabulary of_pair = pair();
  const auto of_old = parse_vocabulary("old_tokenizer.json", bpe_sample("old_tokenizer.json"), "");
  ASSERT_TRUE(of_old.is_ok()) << of_old.status().message();
  ASSERT_GT(names_of_texts().size(), 15u);
  for (const auto& [kind, vocabulary] :
       {std::pair("whole", &of_whole), std::pair("whole", &*of_old), std::pair("pair", &of_pair)}) {
    BpeEncoder encoder(*vocabulary);
    // Twice: what is remembered says the same.
    for (int round = 0; round < 2; ++round)
      for (const std::string& name : names_of_texts()) {
        std::vector<uint32_t> tokens;
        encoder.encode(bpe_sample("text " + name), tokens);
        EXPECT_EQ(tokens, wanted(kind, name)) << kind << ", " << name << ", round " << round;
      }
  }
}

TEST(BpeEncoder, WhatIsRememberedHasALimitAndChangesNothing) {
  const BpeVocabulary vocabulary = pair();
  BpeEncoder used(vocabulary);
  std::vector<uint32_t> ignored;
  for (int i = 0; i < 200'000; ++i) used.encode(" w" + std::to_string(i), ignored);
  for (const std::string& name : names_of_texts()) {
    std::vector<uint32_t> tokens;
    used.encode(bpe_sample("text " + name), tokens);
    EXPECT_EQ(tokens, wanted("pair", name)) << name;
  }
}

TEST(BpeEncoder, APieceOfAMegabyteTakesNoQuadraticTime) {
  const BpeVocabulary vocabulary = pair();
  BpeEncoder encoder(vocabulary);
  std::vector<uint32_t> tokens;
  encoder.encode(std::string(1'000'000, 'a'), tokens);  // hours, if every merge looked at the rest
  EXPECT_LT(tokens.size(), 500'000u);
}

TEST(PreTokens, CutAsGpt2Does) {
  EXPECT_THAT(pieces_of("It's  we'll 12a!"),
              ElementsAre("It", "'s", " ", " we", "'ll", " 12", "a", "!"));
  EXPECT_THAT(pieces_of("a \n b  "), ElementsAre("a", " \n", " b", "  "));
  EXPECT_THAT(pieces_of("x\xc2\xa0 y"), ElementsAre("x", "\xc2\xa0", " y"));
  EXPECT_THAT(pieces_of("'S 'd ''re"), ElementsAre("'", "S", " '", "d", " ''", "re"));
}

TEST(Utf8, WhatIsNoneIsFoundAtItsFirstByte) {
  EXPECT_EQ(find_no_utf8(""), std::nullopt);
  EXPECT_EQ(find_no_utf8("plain, \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80"), std::nullopt);
  for (const char* bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xe2\x82", "\xc3("})
    EXPECT_EQ(find_no_utf8("eight by" + std::string(bad) + " and on"), 8u) << bad;
  EXPECT_EQ(find_no_utf8("cut \xe2\x82"), 4u);
}

}  // namespace
}  // namespace lockstep::data
