// Prompts to tokens and tokens to text, for each kind of tokens.
#include "worker/inference/token_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/file.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

// Bytes, one merge, and the end of a text. Byte b has the number b.
std::string small_tokenizer() {
  std::string vocab;
  uint32_t letter = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    const uint32_t code = is_itself ? byte : letter++;
    char name[16];
    std::snprintf(name, sizeof name, "\\u%04x", code);
    vocab += "\"" + std::string(name) + "\": " + std::to_string(byte) + ", ";
  }
  return "{\"added_tokens\": [{\"id\": 257, \"content\": \"<|endoftext|>\"}],"
         "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false},"
         "\"model\": {\"type\": \"BPE\", \"vocab\": {" +
         vocab + "\"ab\": 256}, \"merges\": [\"a b\"]}}";
}

class TokenTextOfPieces : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = directory_.path("tokenizer.json");
    ASSERT_TRUE(replace_file(path_, small_tokenizer()).is_ok());
  }
  TokenText open() const {
    auto text = TokenText::of_vocabulary(path_, "");
    EXPECT_TRUE(text.is_ok()) << text.status().message();
    return std::move(text).value();
  }

  TemporaryDirectory directory_;
  std::string path_;
};

TEST_F(TokenTextOfPieces, APromptBecomesPiecesAndComesBack) {
  TokenText text = open();
  const auto tokens = text.encode("abc", 300);
  ASSERT_TRUE(tokens.is_ok()) << tokens.status().message();
  EXPECT_THAT(*tokens, ElementsAre(256, 'c'));
  EXPECT_EQ(text.add(256) + text.add('c') + text.finish(), "abc");
  EXPECT_EQ(text.end(), 257u);
  EXPECT_TRUE(text.has(257));
  EXPECT_FALSE(text.has(258));
}

TEST_F(TokenTextOfPieces, ACharacterOfSeveralTokensIsShownWhole) {
  TokenText text = open();
  EXPECT_EQ(text.add(0xe2), "");
  EXPECT_EQ(text.add(0x82), "");
  EXPECT_EQ(text.add(0xac), "\xe2\x82\xac");
}

TEST_F(TokenTextOfPieces, APromptThatCannotBeTakenIsRefused) {
  const TokenText text = open();
  EXPECT_THAT(text.encode("", 300), FailsWith(Code::kUsage, Names("prompt"), Advises("--prompt")));
  EXPECT_THAT(text.encode("ok \xff", 300),
              FailsWith(Code::kUsage, Names("byte 3", path_), Advises("iconv")));
  EXPECT_THAT(text.encode("abc", 256), FailsWith(Code::kUsage, Names("256"), Advises("tokenizer")));
  EXPECT_THAT(TokenText::of_vocabulary(path_, std::string(64, '0')),
              FailsWith(Code::kUsage, Names(path_)));
}

TEST(TokenText, BytesAreTheText) {
  TokenText text = TokenText::of_bytes();
  const auto tokens = text.encode("a\xff", 256);
  ASSERT_TRUE(tokens.is_ok()) << tokens.status().message();
  EXPECT_THAT(*tokens, ElementsAre('a', 255));
  EXPECT_FALSE(text.has(256));
  EXPECT_THAT(text.encode("\xff", 128), FailsWith(Code::kUsage, Names("255", "128")));
}

TEST(TokenText, NumbersAreShownAndTakenAsNumbers) {
  TokenText text = TokenText::of_numbers();
  const auto tokens = text.encode(" 464  2068\n", 50257);
  ASSERT_TRUE(tokens.is_ok()) << tokens.status().message();
  EXPECT_THAT(*tokens, ElementsAre(464, 2068));
  EXPECT_EQ(text.add(464) + text.add(7) + text.finish(), "464 7 ");
  EXPECT_THAT(text.encode("To be", 50257),
              FailsWith(Code::kUsage, Names("To"), Advises("--tokenizer")));
  EXPECT_THAT(text.encode("99999999999", 50257), FailsWith(Code::kUsage, Names("99999999999")));
  EXPECT_THAT(text.encode("50257", 50257), FailsWith(Code::kUsage, Names("50257")));
}

}  // namespace
}  // namespace lockstep
