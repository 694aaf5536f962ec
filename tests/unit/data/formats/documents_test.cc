// Documents of tokens as a data set, padded and packed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "comm/base/labels.h"
#include "comm/base/prng.h"
#include "data/dataset/sample_cut.h"
#include "data/formats/tokens/megatron_index.h"
#include "data/open/inspect.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/support/document_files.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const SampleCut kPadded = [] {
  SampleCut cut{.block = 4};
  cut.documents = Documents::kPad;
  return cut;
}();

TEST_F(DocumentFiles, APaddedSampleIsADocumentAndNothingBehindIt) {
  put("d/x.bin", stored<uint16_t>({1, 2, 9, 3, 4, 5, 9}));
  const auto dataset = open(cut(Documents::kPad, 9));
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_TRUE((*dataset)->is<Sequences>());
  EXPECT_FALSE((*dataset)->shape().has_positions);
  EXPECT_EQ((*dataset)->classes(), 10U);
  EXPECT_THAT(all_of(**dataset), ElementsAre(Sample{{1, 2, 0, 0}, {}, {2, 9, kNoLabel, kNoLabel}},
                                             Sample{{3, 4, 5, 0}, {}, {4, 5, 9, kNoLabel}}));
  EXPECT_EQ((*dataset)->name_of(1), dir_.path("d/x.bin") + " at byte 6");
}

TEST_F(DocumentFiles, APackHasPositionsThatBeginAgainWithEveryDocument) {
  put("d/x.bin", stored<uint16_t>({1, 9, 2, 3, 9, 4, 5, 6, 9}));
  const auto dataset = open(cut(Documents::kPack, 9, 6));
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_TRUE((*dataset)->shape().has_positions);
  EXPECT_THAT(all_of(**dataset),
              ElementsAre(Sample{{1, 2, 3, 4, 5, 6}, {0, 0, 1, 0, 1, 2}, {9, 3, 9, 5, 6, 9}}));
  const auto wide = open(cut(Documents::kPack, 9, 8));
  EXPECT_THAT(all_of(**wide), ElementsAre(Sample{{1, 2, 3, 4, 5, 6, 0, 0},
                                                 {0, 0, 1, 0, 1, 2, 0, 0},
                                                 {9, 3, 9, 5, 6, 9, kNoLabel, kNoLabel}}));
}

TEST_F(DocumentFiles, ALongDocumentLosesNoPrediction) {
  put("d/x.txt", "abcdefghij");
  EXPECT_THAT(labels(kPadded),
              ElementsAre(Tokens{'b', 'c', 'd', 'e'}, Tokens{'f', 'g', 'h', 'i'}, Tokens{'j'}));
  put("d/x.txt", "abcde");  // which fills one sample
  EXPECT_THAT(labels(kPadded), ElementsAre(Tokens{'b', 'c', 'd', 'e'}));
}

TEST_F(DocumentFiles, ByLengthIsFromShortToLongAndElseByPlace) {
  put("d/x.bin", stored<uint16_t>({1, 2, 3, 9, 4, 9, 5, 6, 9, 7, 9}));
  SampleCut wanted = cut(Documents::kPad, 9);
  wanted.by_length = true;
  EXPECT_THAT(labels(wanted), ElementsAre(Tokens{9}, Tokens{9}, Tokens{6, 9}, Tokens{2, 3, 9}));
  const auto sorted = open(wanted);
  EXPECT_EQ(sample_of(**sorted, 0).input[0], 4);
  EXPECT_EQ(sample_of(**sorted, 1).input[0], 7);
  EXPECT_NE((*sorted)->fingerprint(), (*open(cut(Documents::kPad, 9)))->fingerprint());
}

TEST_F(DocumentFiles, WhatPredictsNothingIsLeftOutAndCounted) {
  put("d/x.bin", stored<uint16_t>({9, 1, 2, 9, 9, 9, 3, 4}));  // as llm.c: the token comes first
  EXPECT_THAT(labels(cut(Documents::kPad, 9)), ElementsAre(Tokens{2, 9}, Tokens{4}));
  const auto seen = inspect_data(spec_of(dir_.path("d/x.bin")), "", {}, cut(Documents::kPack, 9));
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  ASSERT_TRUE(seen->splits[0].documents.has_value());
  EXPECT_EQ(seen->splits[0].documents->documents, 2U);
  EXPECT_EQ(seen->splits[0].documents->too_short, 3U);
  EXPECT_EQ(seen->splits[0].documents->predictions, 3U);
  EXPECT_THAT(to_text(*seen), AllOf(HasSubstr("2 in 2 pieces; 3 left out"),
                                    HasSubstr("predictions  3, and 25.000 % padding")));
  put("d/x.bin", stored<uint16_t>({9, 9, 9}));
  EXPECT_EQ(failure(cut(Documents::kPad, 9)).code(), Code::kBadData);
  EXPECT_THAT(failure(cut(Documents::kPad, 9)).message(),
              AllOf(HasSubstr(dir_.path("d/x.bin")), Says("two tokens")));
}

TEST_F(DocumentFiles, EveryFileOfTextIsADocumentAndATokenSplitsIt) {
  put("d/a.txt", "one");
  put("d/b.txt", "two\n2");
  put("d/c.txt", "!");
  EXPECT_THAT(labels(kPadded), ElementsAre(Tokens{'n', 'e'}, Tokens{'w', 'o', '\n', '2'}));
  EXPECT_THAT(labels(cut(Documents::kPad, '\n')),
              ElementsAre(Tokens{'n', 'e'}, Tokens{'w', 'o', '\n'}));
  EXPECT_EQ((*open(kPadded))->classes(), 256U);
}

TEST_F(DocumentFiles, MegatronsIndexSaysWhereTheyEnd) {
  put("d/x.bin", stored<uint16_t>({1, 2, 3, 4, 5, 6, 7}));
  put("d/x.idx", index_of({1, 2, 0, 3, 1}, {0, 2, 3, 3, 5}));
  // Documents of 3, 0, 0 and 4 tokens.
  EXPECT_THAT(labels(kPadded), ElementsAre(Tokens{2, 3}, Tokens{5, 6, 7}));
  EXPECT_EQ((*open(kPadded))->documents()->counts().too_short, 2U);
  EXPECT_THAT(labels(cut(Documents::kPad, 5)), ElementsAre(Tokens{2, 3}, Tokens{5}, Tokens{7}));
}

TEST_F(DocumentFiles, AMegatronIndexThatIsDamagedIsRefused) {
  put("d/x.bin", stored<uint16_t>({1, 2, 3, 4, 5, 6, 7}));
  for (const std::vector<uint64_t>& firsts :
       {std::vector<uint64_t>{0, 9, 5}, {0, 3, 2, 5}, {1, 5}, {0, 3}, {}}) {
    put("d/x.idx", index_of({1, 2, 0, 3, 1}, firsts));
    EXPECT_EQ(failure(kPadded).code(), Code::kBadData);
    EXPECT_THAT(failure(kPadded).message(), AllOf(Names(dir_.path("d/x.idx")), Says("damaged")));
  }
  std::string huge = index_of({1, 2, 0, 3, 1}, {0, 5});
  huge.replace(26, 8, number(~uint64_t{0} / 8, 8));
  put("d/x.idx", huge);
  EXPECT_THAT(failure(kPadded).message(), HasSubstr("is truncated"));
}

TEST_F(DocumentFiles, EveryListOfArrowIsOne) {
  for (const char* name : {"list_uint16", "list_int32_batches", "large_list_int64"}) {
    put("x.arrow", arrow_sample(name));
    EXPECT_THAT(labels(kPadded, "x.arrow"),
                ElementsAre(Tokens{101, 102}, Tokens{104}, Tokens{106, 107, 108, 109}))
        << name;
    EXPECT_EQ((*open(kPadded, "x.arrow"))->documents()->counts().too_short, 1U);
  }
  put("x.arrow", arrow_sample("fixed_list_uint32"));
  EXPECT_THAT(labels(kPadded, "x.arrow"),
              ElementsAre(Tokens{101, 102, 103, 104}, Tokens{106, 107, 108, 109}));
  put("x.arrow", arrow_sample("flat_uint16"));
  EXPECT_EQ(failure(kPadded, "x.arrow").code(), Code::kUsage);
  // Across the batches, whose ends are no documents'.
  EXPECT_THAT(labels(cut(Documents::kPad, 105), "x.arrow"),
              ElementsAre(Tokens{101, 102, 103, 104}, Tokens{105}, Tokens{107, 108, 109}));
}

TEST_F(DocumentFiles, WhatDoesNotSayItsDocumentsIsAsked) {
  put("d/x.bin", stored<uint16_t>({1, 2, 3}));
  EXPECT_EQ(failure(kPadded).code(), Code::kUsage);
  EXPECT_THAT(failure(kPadded).message(),
              AllOf(HasSubstr(dir_.path("d/x.bin")), HasSubstr("data.document_end")));
  EXPECT_EQ(failure(cut(Documents::kPad, 7)).code(), Code::kUsage);
  EXPECT_THAT(failure(cut(Documents::kPad, 65'538)).message(),
              AllOf(HasSubstr("is 65538"), Says("no such token")));  // not 2
  EXPECT_EQ(failure(cut(Documents::kPad, 3, 0)).code(), Code::kUsage);
}

TEST_F(DocumentFiles, TheSameDocumentsAreTheSameDataWhereverTheyAre) {
  put("x.arrow", arrow_sample("list_uint16"));
  put("x.bin", stored<uint16_t>({100, 101, 102, 103, 104, 105, 106, 107, 108, 109}));
  put("y/z.bin", slurp(dir_.path("x.bin")));
  const auto fingerprint = [&](const SampleCut& wanted, const std::string& name) {
    const auto dataset = open(wanted, name);
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    return dataset.is_ok() ? (*dataset)->fingerprint() : "";
  };
  const SampleCut wanted = cut(Documents::kPack, 104);
  const std::string first = fingerprint(wanted, "x.bin");
  EXPECT_EQ(fingerprint(wanted, "x.bin"), first);
  EXPECT_EQ(fingerprint(wanted, "y/z.bin"), first);
  put("flat.arrow", arrow_sample("flat_uint16"));
  EXPECT_EQ(fingerprint(wanted, "flat.arrow"), first);
  EXPECT_NE(fingerprint(wanted, "x.arrow"), first);  // 102 ends one there, too
  EXPECT_NE(fingerprint(cut(Documents::kPad, 104), "x.bin"), first);
  EXPECT_NE(fingerprint(cut(Documents::kPack, 105), "x.bin"), first);
  EXPECT_NE(fingerprint(cut(Documents::kPack, 104, 5), "x.bin"), first);
  // The content of one token, and no place.
  put("x.bin", stored<uint16_t>({100, 101, 102, 103, 104, 105, 106, 107, 108, 99}));
  EXPECT_NE(fingerprint(wanted, "x.bin"), first);
  // Old runs have this fingerprint, so no change of this code may change it.
  EXPECT_EQ(first, "1dccaf7d205b7959a59eeb4f36f28705");
}

TEST_F(DocumentFiles, WhereATokenEndsThemIsLookedUpWhereItWasKept) {
  put("d/x.bin", stored<uint16_t>({1, 2, 9, 3, 4, 5, 9}));
  const SampleCut wanted = cut(Documents::kPad, 9);
  const auto first = all_of(**open(wanted));
  EXPECT_EQ(std::exchange(looks_, 0), 1);
  EXPECT_EQ(all_of(**open(wanted)), first);
  EXPECT_EQ(std::exchange(looks_, 0), 0);
  (void)open(cut(Documents::kPad, 4));
  EXPECT_EQ(std::exchange(looks_, 0), 1);
  std::string kept;
  for (const auto& entry : fs::directory_iterator(dir_.path("cache")))
    if (entry.path().string().ends_with("-9.ends")) kept = entry.path().string();
  const std::string content = slurp(kept);
  for (size_t at = 0; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file(kept, at % 2 == 0 ? damaged : content.substr(0, at));
    EXPECT_EQ(all_of(**open(wanted)), first);
    EXPECT_EQ(std::exchange(looks_, 0), 1) << at;
  }
  put("d/x.bin", stored<uint16_t>({1, 9, 2, 3, 4, 5, 9}));
  EXPECT_NE(all_of(**open(wanted)), first);
}

// In every way: as the samples say, against what is done with the tokens by hand.
TEST_F(DocumentFiles, AllThatThereIsToPredictIsPredictedOnce) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Prng prng(seed);
    const auto block = static_cast<uint32_t>(2 + prng.below(20));
    fs::remove_all(dir_.path("d"));
    std::vector<Sample> expected;
    for (int file = 0; file < 3; ++file) {
      Tokens tokens;
      const uint64_t count = 100 + prng.below(1'000);
      for (uint64_t i = 0; i < count; ++i)
        tokens.push_back(static_cast<int64_t>(prng.below(prng.below(2) == 0 ? 2 : 70)));
      tokens.push_back(static_cast<int64_t>(prng.below(2)));
      put("d/" + std::to_string(file) + ".bin", stored<uint16_t>(tokens));
      Sample now;
      for (size_t i = 0; i < tokens.size(); ++i) {
        const bool is_last = i + 1 == tokens.size() || tokens[i] == 1;
        if (!is_last) {
          now.positions.push_back(static_cast<int64_t>(now.input.size()));
          now.input.push_back(tokens[i]);
          now.labels.push_back(tokens[i + 1]);
        }
        if (!now.input.empty() && (is_last || now.input.size() == block))
          expected.push_back(std::exchange(now, {}));
      }
    }
    for (const Documents documents : {Documents::kPad, Documents::kPack}) {
      const auto dataset = open(cut(documents, 1, block));
      ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
      std::vector<Sample> found;
      for (const Sample& sample : all_of(**dataset)) {
        Sample now;
        for (size_t i = 0; i < block && sample.labels[i] != kNoLabel; ++i) {
          const auto position =
              documents == Documents::kPack ? sample.positions[i] : static_cast<int64_t>(i);
          if (position == 0 && i > 0) found.push_back(std::exchange(now, {}));
          now.positions.push_back(position);
          now.input.push_back(sample.input[i]);
          now.labels.push_back(sample.labels[i]);
        }
        found.push_back(now);
        for (size_t i = sample.labels.size(); i-- > 0 && sample.labels[i] == kNoLabel;) {
          EXPECT_EQ(sample.input[i], 0);
          if (documents == Documents::kPack) {
            EXPECT_EQ(sample.positions[i], 0);
          }
        }
      }
      auto wanted = expected;
      if (documents == Documents::kPack) {
        const auto by_all = [](const Sample& a, const Sample& b) {
          return std::tie(a.input, a.labels) < std::tie(b.input, b.labels);
        };
        std::sort(found.begin(), found.end(), by_all);
        std::sort(wanted.begin(), wanted.end(), by_all);
      }
      EXPECT_EQ(found, wanted) << "seed " << seed;
    }
  }
}

TEST_F(DocumentFiles, ATokenBeyondTheVocabularyIsToldWithItsOffset) {
  put("d/x.bin", stored<uint16_t>({1, 2, 9, 300}));
  SampleCut wanted = cut(Documents::kPack, 9);
  wanted.vocab = 300;
  EXPECT_THAT(failure(wanted).message(), AllOf(Names("offset 6"), Says("token 300")));
}

// A pack may lie in several files.
TEST_F(DocumentFiles, AFileThatChangesIsSeenByThePacksThatHaveSomeOfIt) {
  put("d/a.txt", "abc");
  put("d/b.txt", "ABCD");
  put("d/c.txt", "123");
  const auto dataset = open(cut(Documents::kPack, std::nullopt, 5));
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  ASSERT_EQ((*dataset)->samples(), 2U);
  const std::vector<uint64_t> first = {0}, second = {1};
  EXPECT_THAT(sample_of(**dataset, 0).input, ElementsAre('a', 'b', 'A', 'B', 'C'));
  fs::resize_file(dir_.path("d/b.txt"), 2);
  EXPECT_THAT((*dataset)->unchanged(first).message(), HasSubstr(dir_.path("d/b.txt")));
  EXPECT_TRUE((*dataset)->unchanged(second).is_ok());
}

}  // namespace
}  // namespace lockstep::data
