// Text with a vocabulary as a data set: tokens in the cache, made once.
#include "data/formats/tokens/tokenized_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "data/bpe/encoder.h"
#include "data/loader/verify.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/bpe_samples.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class TokenizedTextFiles : public testing::Test {
 protected:
  TokenizedTextFiles() {
    fs::create_directories(dir_.path("v"));
    write_file(dir_.path("v/tokenizer.json"), bpe_sample("tokenizer.json"));
  }

  SampleCut cut(uint32_t block = 8) {
    SampleCut made{.block = block};
    made.tokenizer = dir_.path("v");
    return made;
  }
  Result<std::unique_ptr<Dataset>> open(const SampleCut& wanted) {
    const ProgressFn progress = [this](const std::string& what, uint64_t, uint64_t) {
      if (what.starts_with("tokenizing ")) ++made_;
    };
    return open_dataset(spec_of(dir_.path("text.txt"), "text"), Split::kTrain, dir_.path("cache"),
                        progress, wanted);
  }
  Status failure(const SampleCut& wanted) { return open(wanted).status(); }
  bool was_made() { return std::exchange(made_, 0) > 0; }

  // As stored, of all samples in a row.
  std::vector<uint32_t> tokens_of(const std::string& text, const BpeVocabulary& vocabulary) {
    write_file(dir_.path("text.txt"), text);
    const auto made =
        open_tokenized(dir_.path("text.txt"), vocabulary, dir_.path("cache"), ProgressFn());
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    if (!made.is_ok()) return {};
    std::vector<uint32_t> tokens(made->tokens);
    for (uint64_t i = 0; i < made->tokens; ++i)
      std::memcpy(&tokens[i], made->file.bytes().data() + i * made->token_bytes, made->token_bytes);
    return tokens;
  }

  TemporaryDirectory dir_;
  int made_ = 0;
};

// Words of all of the samples' texts, in any order, which are many parts.
std::string long_text(size_t bytes) {
  std::mt19937_64 random(7);
  std::vector<std::string> texts;
  for (const auto& [name, hex] : kBpeSamples)
    if (name.starts_with("text ") && name != "text long_run") texts.push_back(bpe_sample(name));
  std::string text;
  while (text.size() < bytes) text += texts[random() % texts.size()];
  return text;
}

TEST_F(TokenizedTextFiles, ManyPartsGiveTheTokensOfTheWhole) {
  const auto vocabulary = BpeVocabulary::open(dir_.path("v"));
  const std::string text = long_text(3'000'000);
  std::vector<uint32_t> whole;
  BpeEncoder(*vocabulary).encode(text, whole);
  EXPECT_EQ(tokens_of(text, *vocabulary), whole);
}

TEST_F(TokenizedTextFiles, ATokenWithABlankWithinIsFoundAcrossPartsToo) {
  const auto vocabulary = BpeVocabulary::open(dir_.path("v"));
  std::string text;
  while (text.size() < 3'000'000) text += "two words";
  const std::vector<uint32_t> tokens = tokens_of(text, *vocabulary);
  EXPECT_EQ(tokens.size(), text.size() / 9);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), tokens[0]), tokens.size());
}

TEST_F(TokenizedTextFiles, AreMadeOnceAndAnewWhereTheTextOrTheVocabularyIsAnother) {
  write_file(dir_.path("text.txt"), long_text(5'000));
  const std::string first = (*open(cut()))->fingerprint();
  EXPECT_TRUE(was_made());
  EXPECT_EQ((*open(cut(16)))->samples(), (*open(cut(8)))->samples() / 2);
  EXPECT_FALSE(was_made());
  const auto time = fs::last_write_time(dir_.path("text.txt"));
  std::string other = long_text(5'000);
  other[other.find('e')] = 'a';
  write_file(dir_.path("text.txt"), other);
  fs::last_write_time(dir_.path("text.txt"), time);  // only the content tells
  EXPECT_NE((*open(cut()))->fingerprint(), first);
  EXPECT_TRUE(was_made());
  write_file(dir_.path("v/tokenizer.json"), bpe_sample("tokenizer.json") + " ");
  EXPECT_TRUE(open(cut()).is_ok());
  EXPECT_TRUE(was_made());
}

TEST_F(TokenizedTextFiles, ADamagedCopyIsMadeAnew) {
  write_file(dir_.path("text.txt"), long_text(5'000));
  const std::string first = (*open(cut()))->fingerprint();
  for (const auto& file : fs::directory_iterator(dir_.path("cache"))) {
    if (file.path().extension() != ".tokens") continue;
    std::string content = slurp(file.path());
    content[11] ^= 1;
    write_file(file.path(), content);
  }
  was_made();
  EXPECT_EQ((*open(cut()))->fingerprint(), first);
  EXPECT_TRUE(was_made());
}

TEST_F(TokenizedTextFiles, TheVocabularyIsTheTokenizersOrMore) {
  write_file(dir_.path("text.txt"), long_text(5'000));
  const auto dataset = open(cut());
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->classes(), 423u);
  EXPECT_EQ((*dataset)->format(), "text");
  EXPECT_THAT((*dataset)->name_of(1), Names("text.txt", "(its tokens)", "byte 16"));
  SampleCut wanted = cut();
  wanted.vocab = 512;
  EXPECT_EQ((*open(wanted))->classes(), 512u);
  wanted.vocab = 422;
  EXPECT_EQ(failure(wanted).code(), Code::kUsage);
  EXPECT_THAT(failure(wanted).message(), AllOf(Names("model.vocab is 422"), Says("423"),
                                               Advises("at least", "leave the key out")));
}

TEST_F(TokenizedTextFiles, WhatCannotBeEncodedIsSaidWithItsPlace) {
  write_file(dir_.path("text.txt"), "good \xc3\xa4, then bad \xff, and on");
  EXPECT_EQ(failure(cut()).code(), Code::kBadData);
  EXPECT_THAT(failure(cut()).message(),
              AllOf(Names("text.txt", "byte 18"), Says("UTF-8"), HasSubstr("iconv")));
  write_file(dir_.path("text.txt"), std::string(18'000'000, 'x'));
  EXPECT_THAT(failure(cut()).message(), AllOf(Names("byte 0"), Says("without a blank")));
  write_file(dir_.path("text.txt"), "short");
  EXPECT_THAT(failure(cut()).message(), AllOf(HasSubstr("text.txt"), HasSubstr(" tokens; a seq")));
  write_file(dir_.path("text.txt"), "");
  EXPECT_EQ(failure(cut()).code(), Code::kBadData);
  for (const auto& file : fs::directory_iterator(dir_.path("cache")))
    EXPECT_EQ(file.path().string().find(".tmp."), std::string::npos) << file.path();
}

TEST_F(TokenizedTextFiles, AnotherVocabularyThanTheRunsIsRefused) {
  write_file(dir_.path("text.txt"), long_text(5'000));
  SampleCut wanted = cut();
  wanted.tokenizer_sha256 = vocabulary_sha256(wanted.tokenizer).value();
  EXPECT_TRUE(open(wanted).is_ok());
  write_file(dir_.path("v/tokenizer.json"), bpe_sample("old_tokenizer.json"));
  EXPECT_EQ(failure(wanted).code(), Code::kUsage);
  EXPECT_THAT(failure(wanted).message(), Says("the run began with"));
}

TEST_F(TokenizedTextFiles, NeedTextAPlaceToBeKeptAndAVocabularyThatLiesElsewhere) {
  write_file(dir_.path("x.bin"), std::string(100, '\0'));
  const auto tokens = spec_of(dir_.path("x.bin"), "tokens");
  const auto other = open_dataset(tokens, Split::kTrain, dir_.path("cache"), {}, cut());
  EXPECT_THAT(other, FailsWith(Code::kUsage, Names("data.tokenizer")));
  EXPECT_EQ(verify_data(tokens, dir_.path("cache"), 1, {}, cut()).status().code(), Code::kUsage);
  write_file(dir_.path("text.txt"), long_text(5'000));
  const auto text = spec_of(dir_.path("text.txt"), "text");
  EXPECT_THAT(open_dataset(text, Split::kTrain, "", {}, cut()).status().message(),
              HasSubstr("set data.cache_dir"));
  write_file(dir_.path("v/vocab.json"), bpe_sample("vocab.json"));
  write_file(dir_.path("v/merges.txt"), bpe_sample("merges.txt"));
  fs::remove(dir_.path("v/tokenizer.json"));
  const auto within =
      open_dataset(spec_of(dir_.path("v"), "text"), Split::kTrain, dir_.path("cache"), {}, cut());
  EXPECT_THAT(within, FailsWith(Code::kUsage, Names("data.tokenizer"), Says("among")));
}

TEST_F(TokenizedTextFiles, AreVerifiedAndInspected) {
  write_file(dir_.path("text.txt"), long_text(5'000));
  const auto spec = spec_of(dir_.path("text.txt"), "text");
  const auto verified = verify_data(spec, dir_.path("cache"), 2, {}, cut());
  ASSERT_TRUE(verified.is_ok()) << verified.status().message();
  EXPECT_EQ((*verified)[0].damaged, 0u);
  const auto seen = inspect_data(spec, dir_.path("cache"), {}, cut());
  ASSERT_TRUE(seen.is_ok());
  EXPECT_EQ(seen->splits[0].classes, 423u);
  EXPECT_EQ(seen->splits[0].shape.token_bytes, 2u);
}

}  // namespace
}  // namespace lockstep::data
