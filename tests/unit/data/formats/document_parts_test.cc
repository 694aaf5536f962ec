// Parts of a data set of documents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "data/dataset/sample_cut.h"
#include "data/view/selected_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/unit/data/support/document_files.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kDocuments = 600;
constexpr int64_t kPartEnd = 9;

// Every token of document i is 100 + i, and the document has so many predictions.
uint64_t predictions_of(int64_t i) {
  return static_cast<uint64_t>(1 + i * 7 % 13);
}

Tokens numbered_documents() {
  Tokens tokens;
  for (int64_t i = 0; i < kDocuments; ++i) {
    tokens.insert(tokens.end(), predictions_of(i), 100 + i);
    tokens.push_back(kPartEnd);
  }
  return tokens;
}

// Returns how much is predicted in a part, by document.
std::map<int64_t, uint64_t> predictions_in(const Dataset& part) {
  std::map<int64_t, uint64_t> out;
  for (const Sample& sample : all_of(part))
    for (size_t k = 0; k < sample.input.size(); ++k)
      if (sample.labels[k] != kNoLabel) ++out[sample.input[k] - 100];
  return out;
}

std::vector<SampleCut> ways_to_make_samples(uint32_t short_block, uint32_t long_block) {
  std::vector<SampleCut> ways;
  for (const uint32_t block : {short_block, long_block}) {
    for (const Documents documents : {Documents::kPad, Documents::kPack}) {
      SampleCut cut{.block = block};
      cut.documents = documents;
      cut.document_end = kPartEnd;
      ways.push_back(cut);
    }
    ways.push_back(ways[ways.size() - 2]);
    ways.back().by_length = true;
  }
  return ways;
}

TEST_F(DocumentFiles, TheSameOnesAreHeldOutWholeHoweverTheyBecomeSamples) {
  put("d/x.bin", stored<uint16_t>(numbered_documents()));
  std::set<std::string> fingerprints;
  std::set<std::map<int64_t, uint64_t>> held_out;
  std::set<std::map<int64_t, uint64_t>> kept;
  for (const SampleCut& wanted : ways_to_make_samples(4, 30)) {
    auto whole = open(wanted);
    ASSERT_TRUE(whole.is_ok()) << whole.status().message();
    const auto parts = split(std::move(*whole), {0.2, 1, 3});
    ASSERT_TRUE(parts.is_ok()) << parts.status().message();
    EXPECT_EQ(parts->held_out->documents()->counts().documents, 120U);
    EXPECT_EQ(parts->kept->documents()->counts().documents, 480U);
    held_out.insert(predictions_in(*parts->held_out));
    kept.insert(predictions_in(*parts->kept));
    fingerprints.insert({parts->held_out->fingerprint(), parts->kept->fingerprint()});
  }
  ASSERT_EQ(held_out.size(), 1U);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(fingerprints.size(), 12U);
  std::map<int64_t, uint64_t> all = *held_out.begin();
  EXPECT_EQ(all.size(), 120U);
  all.insert(kept.begin()->begin(), kept.begin()->end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kDocuments)) << "disjoint";
  for (const auto& [document, predictions] : all)
    EXPECT_EQ(predictions, predictions_of(document)) << document;
  // If this choice changes, runs are no longer compared with older runs on the same documents.
  std::vector<int64_t> first;
  for (auto at = held_out.begin()->begin(); first.size() < 6; ++at) first.push_back(at->first);
  EXPECT_THAT(first, ElementsAre(1, 18, 19, 28, 30, 32));
}

TEST_F(DocumentFiles, AFractionIsOfDocumentsAndTheSeedSaysWhich) {
  put("d/x.bin", stored<uint16_t>(numbered_documents()));
  const auto chosen = [this](const SelectionSpec& spec) {
    return predictions_in(**select_kept(open(cut(Documents::kPack, kPartEnd)).value(), spec));
  };
  const auto some = chosen({0, 0.25, 3});
  EXPECT_EQ(some.size(), 150U);
  EXPECT_EQ(chosen({0, 0.25, 3}), some);
  EXPECT_NE(chosen({0, 0.25, 4}), some);
  EXPECT_EQ(chosen({0.2, 0.25, 3}).size(), 120U);
}

TEST_F(DocumentFiles, EachPartIsPackedByItselfAsWellAsTheWhole) {
  put("d/x.bin", stored<uint16_t>(numbered_documents()));
  auto whole = open(cut(Documents::kPack, kPartEnd, 30));
  ASSERT_TRUE(whole.is_ok());
  const uint64_t packs = (*whole)->samples();
  const auto parts = split(std::move(*whole), {0.2, 1, 3});
  ASSERT_TRUE(parts.is_ok()) << parts.status().message();
  EXPECT_LE(parts->kept->samples() + parts->held_out->samples(), packs + 2);
}

TEST_F(DocumentFiles, TooFewOfThemAreRefusedWithWhatTakesParts) {
  put("d/a.txt", std::string(5000, 'a'));
  put("d/b.txt", std::string(5000, 'b'));
  const auto parts = split(open(cut(Documents::kPad)).value(), {.held_out = 0.1});
  EXPECT_THAT(parts, FailsWith(Code::kUsage, Names("0.1", "2 documents", dir_.path("d/a.txt")),
                               Advises("data.documents: stream")));
  EXPECT_TRUE(split(open(cut(Documents::kPad)).value(), {.held_out = 0.5}).is_ok());
}

// A selection takes them from all over, and a curriculum goes by their numbers.
TEST_F(DocumentFiles, APartByLengthIsFromShortToLong) {
  Tokens tokens;
  for (int64_t i = 0; i < 600; ++i) {
    tokens.insert(tokens.end(), static_cast<size_t>(1 + i * 7 % 13), 10);
    tokens.push_back(9);
  }
  put("d/x.bin", stored<uint16_t>(tokens));
  SampleCut wanted = cut(Documents::kPad, 9);
  wanted.block = 20;
  wanted.by_length = true;
  auto whole = open(wanted);
  ASSERT_TRUE(whole.is_ok()) << whole.status().message();
  const auto parts = split(std::move(*whole), {0.2, 0.5, 3});
  ASSERT_TRUE(parts.is_ok()) << parts.status().message();
  for (const auto* part : {parts->kept.get(), parts->held_out.get()}) {
    for (uint64_t i = 0; i + 1 < part->samples(); ++i)
      ASSERT_LE(counted_labels(*part, i), counted_labels(*part, i + 1)) << i;
    EXPECT_LT(counted_labels(*part, 0), counted_labels(*part, part->samples() - 1));
  }
}

TEST_F(DocumentFiles, APartOfThemIsMadeAsTheWholeIs) {
  Tokens tokens;
  for (int64_t i = 0; i < 200; ++i) tokens.insert(tokens.end(), {i + 10, i + 11, 9});
  put("d/x.bin", stored<uint16_t>(tokens));
  auto whole = open(cut(Documents::kPad, 9));
  ASSERT_TRUE(whole.is_ok());
  const auto all = all_of(**whole);
  const auto part = select_kept(std::move(*whole), {0, 0.25, 3});
  ASSERT_TRUE(part.is_ok()) << part.status().message();
  EXPECT_TRUE((*part)->is<Sequences>());
  EXPECT_EQ((*part)->samples(), 50U);
  for (uint64_t i = 0; i < 50; ++i) {
    const Sample sample = sample_of(**part, i);
    const int64_t document = sample.input[0] - 10;
    EXPECT_EQ(sample, all[static_cast<size_t>(document)]);
    EXPECT_THAT((*part)->name_of(i),
                ::testing::EndsWith(" at byte " + std::to_string(6 * document)));
  }
}

}  // namespace
}  // namespace lockstep::data
