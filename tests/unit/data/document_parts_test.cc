// Parts of a data set of documents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/view/selected_dataset.h"
#include "tests/unit/data/document_files.h"

namespace lockstep::data {
namespace {

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
      ASSERT_LE(part->counted_labels(i), part->counted_labels(i + 1)) << i;
    EXPECT_LT(part->counted_labels(0), part->counted_labels(part->samples() - 1));
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
  EXPECT_TRUE((*part)->makes_sequences());
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
