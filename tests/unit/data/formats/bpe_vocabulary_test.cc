// Vocabularies of byte-level BPE: what is read, and what is refused by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/base/limits.h"
#include "data/bpe/byte_letters.h"
#include "data/bpe/vocabulary.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/bpe_samples.h"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kTrained = 420;  // tokens of the samples' vocabulary

Json sample_json() {
  return Json::parse(bpe_sample("tokenizer.json"));
}

Status refused(const Json& json) {
  const auto vocabulary = parse_vocabulary("/v/tokenizer.json", json.dump(), "");
  EXPECT_FALSE(vocabulary.is_ok());
  EXPECT_THAT(vocabulary.status().message(), HasSubstr("/v/tokenizer.json"));
  return vocabulary.status();
}

class BpeFiles : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(dir_.path(name)).parent_path());
    write_file(dir_.path(name), content);
  }
  Status failure(const std::string& name) { return BpeVocabulary::open(dir_.path(name)).status(); }
  TemporaryDirectory dir_;
};

TEST_F(BpeFiles, AFileAPairAndADirectoryOfEitherAreFound) {
  put("whole/tokenizer.json", bpe_sample("tokenizer.json"));
  put("pair/vocab.json", bpe_sample("vocab.json"));
  put("pair/merges.txt", bpe_sample("merges.txt"));
  put("named.json", bpe_sample("old_tokenizer.json"));
  const auto whole = BpeVocabulary::open(dir_.path("whole"));
  ASSERT_TRUE(whole.is_ok()) << whole.status().message();
  EXPECT_EQ(whole->size(), kTrained + 3);  // with the added ones
  EXPECT_THAT(whole->files(), ElementsAre(dir_.path("whole/tokenizer.json")));
  const auto pair = BpeVocabulary::open(dir_.path("pair"));
  ASSERT_TRUE(pair.is_ok()) << pair.status().message();
  EXPECT_EQ(pair->size(), kTrained);
  EXPECT_THAT(pair->files(),
              ElementsAre(dir_.path("pair/vocab.json"), dir_.path("pair/merges.txt")));
  const auto named = BpeVocabulary::open(dir_.path("named.json"));
  ASSERT_TRUE(named.is_ok()) << named.status().message();
  EXPECT_EQ(named->size(), whole->size());
}

TEST_F(BpeFiles, TheHashIsOfTheContentWhereverItLies) {
  put("a/tokenizer.json", bpe_sample("tokenizer.json"));
  put("b.json", bpe_sample("tokenizer.json"));
  put("c.json", bpe_sample("old_tokenizer.json"));
  put("pair/vocab.json", bpe_sample("vocab.json"));
  put("pair/merges.txt", bpe_sample("merges.txt"));
  const std::string hash = vocabulary_sha256(dir_.path("a")).value();
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash, vocabulary_sha256(dir_.path("b.json")).value());
  EXPECT_EQ(hash, BpeVocabulary::open(dir_.path("a"))->sha256());
  EXPECT_NE(hash, vocabulary_sha256(dir_.path("c.json")).value());
  const std::string pair = vocabulary_sha256(dir_.path("pair")).value();
  put("pair/merges.txt", bpe_sample("merges.txt") + "\n");
  EXPECT_NE(pair, vocabulary_sha256(dir_.path("pair")).value());
  const Status other = check_vocabulary_hash("/v", pair, hash);
  EXPECT_THAT(other, FailsWith(Code::kUsage, HasSubstr("/v"), HasSubstr(hash), HasSubstr(pair),
                               Advises("back")));
}

TEST_F(BpeFiles, WhatIsNotThereIsNamed) {
  put("half/vocab.json", bpe_sample("vocab.json"));
  std::filesystem::create_directories(dir_.path("empty"));
  for (const auto& [name, missing] : {std::pair("no.json", "no.json"), std::pair("empty", "empty"),
                                      std::pair("half", "half/merges.txt")}) {
    const Status status = failure(name);
    EXPECT_EQ(status.code(), Code::kNoInput) << status.message();
    EXPECT_THAT(status.message(), AllOf(HasSubstr(dir_.path(missing)), HasSubstr("tokenizer")));
  }
  const Status ranks = failure("gpt2.tiktoken");
  EXPECT_THAT(ranks, FailsWith(Code::kUsage, Advises("tokenizer.json")));
}

TEST(BpeVocabulary, WhatWouldMakeOtherTokensIsRefusedByItsName) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = sample_json();
    json[Json::json_pointer(pointer)] = value;
    return refused(json);
  };
  const Json split = {{"type", "Split"}, {"pattern", {{"Regex", "x"}}}};
  for (const auto& [status, words] : std::initializer_list<std::pair<Status, const char*>>{
           {with("/model/type", "Unigram"), "a model other than BPE"},
           {with("/normalizer", {{"type", "NFC"}}), "a normalizer"},
           {with("/pre_tokenizer", split), "pre_tokenizer"},
           {with("/pre_tokenizer", nullptr), "pre_tokenizer"},
           {with("/pre_tokenizer/use_regex", false), "pre_tokenizer"},
           {with("/pre_tokenizer/add_prefix_space", true), "a space before text"},
           {with("/model/end_of_word_suffix", "</w>"), "end_of_word_suffix"},
           {with("/model/ignore_merges", true), "ignore_merges"},
           {with("/model/byte_fallback", true), "byte_fallback"},
           {with("/model/dropout", 0.1), "drops merges at random"},
           {with("/added_tokens/0/id", 70'000),
            "the id 70000, but the tokenizers library gives it"},
           {with("/added_tokens/0/lstrip", true), "lstrip"}}) {
    EXPECT_EQ(status.code(), Code::kUsage) << words;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(words), Says("reads only byte-level BPE")));
  }
}

TEST(BpeVocabulary, DamageIsSaid) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = sample_json();
    json[Json::json_pointer(pointer)] = value;
    return refused(json);
  };
  Json no_byte = sample_json();
  no_byte["model"]["vocab"].erase("a");
  Json many = sample_json();
  many["added_tokens"] = Json::array();
  for (size_t i = 0; i <= limits::kAddedTokens; ++i)
    many["added_tokens"].push_back({{"id", i}, {"content", "x"}});
  for (const auto& [status, words] : std::initializer_list<std::pair<Status, const char*>>{
           {with("/model/vocab", Json::array()), "has no vocabulary"},
           {with("/model/vocab/a", -1), "is not a number below"},
           {with("/model/vocab/a", limits::kVocabulary), "is not a number below"},
           {with("/model/vocab/a", 1.5), "is not a number below"},
           {with("/model/merges", "x"), "has no list of merges"},
           {with("/model/merges/3", "x"), "merge 4"},
           {with("/model/merges/3", {"x"}), "not a pair"},
           {with("/model/merges/3", {"nobody", "knows"}), "not a token"},
           {with("/added_tokens/0/content", ""), "without content or id"},
           {refused(no_byte), "no token for byte 97"},
           {refused(many), "not a list of at most"},
           {refused(Json::array()), "is not a JSON object"}}) {
    EXPECT_EQ(status.code(), Code::kBadData) << words;
    EXPECT_THAT(status.message(), HasSubstr(words));
  }
}

TEST(BpeVocabulary, AJsonThatIsABombOfBracketsOrCutOffIsRefused) {
  const std::string good = bpe_sample("tokenizer.json");
  const std::string brackets(1'000'000, '[');
  for (const std::string& text :
       {brackets, "{\"model\":" + brackets, good.substr(0, good.size() / 2), std::string()}) {
    const auto vocabulary = parse_vocabulary("v.json", text, "");
    EXPECT_EQ(vocabulary.status().code(), Code::kBadData);
  }
}

TEST(ByteLetters, EveryByteHasOneLetterOfItsOwn) {
  std::vector<bool> seen(256);
  const auto take = [&](const std::string& text) {
    if (const auto byte = byte_of_letter(text)) {
      EXPECT_FALSE(seen[*byte]);
      seen[*byte] = true;
    }
  };
  for (int code = 0; code < 0x80; ++code) take(std::string(1, static_cast<char>(code)));
  for (int code = 0x80; code < 0x800; ++code)
    take({static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))});
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 256);
}

}  // namespace
}  // namespace lockstep::data
