// Documents that are packed are the documents that they were, wherever files and batches are cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "data/dataset/sample_cut.h"
#include "data/formats/tokens/open_tokens.h"
#include "data/pack/pack.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/sanitized.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/support/document_files.h"

namespace lockstep::data {
namespace {

using testing::AllOf;

// "0" as the metadata have it: its length, itself and a NUL.
const std::string kOpen(
    "\1\0\0\0"
    "0\0",
    6);

class PackDocuments : public DocumentFiles {
 protected:
  void pack(const std::string& from, const PackOptions& options = {},
            const std::string& to = "packed") {
    const auto report =
        pack_data(spec_of(dir_.path(from)), dir_.path(to), options, dir_.path("cache"), {});
    ASSERT_TRUE(report.is_ok()) << report.status().message();
    files_ = report->splits[0].files;
  }
  // Padded, packed by best fit and as a stream.
  void expect_same(const std::string& a, const std::string& b, uint32_t block = 4,
                   bool is_one_format = false) {
    for (const Documents how : {Documents::kPad, Documents::kPack, Documents::kStream}) {
      const auto one = open(cut(how, std::nullopt, block), a);
      const auto other = open(cut(how, std::nullopt, block), b);
      ASSERT_TRUE(one.is_ok()) << one.status().message();
      ASSERT_TRUE(other.is_ok()) << other.status().message();
      if (is_one_format) {
        EXPECT_EQ((*one)->fingerprint(), (*other)->fingerprint());
      }
      ASSERT_EQ((*one)->samples(), (*other)->samples());
      if (how == Documents::kStream) continue;
      EXPECT_TRUE(all_of(**one) == all_of(**other));
    }
  }
  // Where they end, those without a token among them.
  void expect_ends(const std::string& path, const std::vector<uint64_t>& sizes) {
    const auto streams = open_token_streams({dir_.path(path)}, "arrow_tokens", {}, nullptr,
                                            dir_.path("cache"), {}, /*with_documents=*/true);
    ASSERT_TRUE(streams.is_ok()) << streams.status().message();
    std::vector<uint64_t> ends(sizes.size());
    std::partial_sum(sizes.begin(), sizes.end(), ends.begin());
    EXPECT_EQ(streams->front().document_ends(), ends);
  }
  // Megatron-LM's, of documents of these sizes.
  std::string put_megatron(const std::vector<uint64_t>& sizes) {
    Tokens tokens;
    for (const uint64_t size : sizes)
      for (uint64_t i = 0; i < size; ++i) tokens.push_back(static_cast<int64_t>((i + size) % 9973));
    std::vector<uint64_t> firsts(sizes.size() + 1);
    std::iota(firsts.begin(), firsts.end(), 0);
    put("m/x.idx", index_of(sizes, firsts));
    put("m/x.bin", stored<uint16_t>(tokens));
    return "m";
  }
  static inline const std::vector<uint64_t> kSizes{0, 1, 2, 3, 0, 4, 5, 9, 0};

  uint64_t files_ = 0;
};

TEST_F(PackDocuments, OfAnIndexKeepTheirEndsWhateverTheCompression) {
  const std::string source = put_megatron(kSizes);
  for (const char* compression : {"none", "zstd", "lz4"}) {
    pack(source, {compression, 1, 1}, compression);
    expect_same(source, compression);
    expect_ends(std::string(compression) + "/data-00000-of-00001.arrow", kSizes);
  }
  pack("zstd", {"none", 1, 1}, "again");
  expect_same("zstd", "again", 4, /*is_one_format=*/true);
}

TEST_F(PackDocuments, OfListsKeepTheirEnds) {
  for (const char* name : {"list_uint16", "list_int32_batches", "large_list_int64"}) {
    const std::string source = put(std::string(name) + "/x.arrow", arrow_sample(name));
    pack(source, {"none", 1, 1}, std::string("packed_") + name);
    expect_same(source, std::string("packed_") + name, 4, /*is_one_format=*/true);
  }
}

TEST_F(PackDocuments, GoOnInTheNextFile) {
  std::string text;
  while (text.size() < 2'500'000) text += "about one thing, " + std::to_string(text.size()) + ", ";
  put("t/a.txt", text);
  put("t/b.txt", "and another" + text.substr(0, 700));
  put("t/c.txt", text.substr(0, 1'000'000));  // as much as fits into one
  pack("t", {"none", 1, 2});
  EXPECT_EQ(files_, 5U);
  expect_same("t", "packed", 512);
}

TEST_F(PackDocuments, GoOnInTheNextBatch) {
  if (kIsSanitized) GTEST_SKIP() << "32 MiB of tokens, one by one, take minutes";
  // A batch has 16 MiB: one of the documents goes beyond the first, and one ends with the second.
  constexpr uint64_t kTokens = 8'388'608;
  const std::vector<uint64_t> sizes{kTokens - 7, 40, kTokens - 33, 5, 12};
  pack(put_megatron(sizes), {"none", 100, 1});
  EXPECT_EQ(files_, 1U);
  expect_same("m", "packed", 4096);
  expect_ends("packed/data-00000-of-00001.arrow", sizes);
}

TEST_F(PackDocuments, OtherEndsAreOtherData) {
  const std::string source = put_megatron({1, 2, 3});
  pack(source);
  put("m/x.idx", index_of({1, 3, 2}, {0, 1, 2, 3}));
  const auto report =
      pack_data(spec_of(dir_.path(source)), dir_.path("packed"), {}, dir_.path("cache"), {});
  EXPECT_THAT(report.status().message(), Says("other data"));
}

TEST_F(PackDocuments, BatchesThatAreNotThereGoOnNowhere) {
  put("t/a.txt", std::string(17'000'000, 'a'));
  put("t/b.txt", "b");
  pack("t", {"none", 17, 1});
  const std::string path = dir_.path("packed/data-00000-of-00002.arrow");
  const std::string whole = slurp(path);
  const auto with = [&](const std::string& said) {
    std::string content = whole;
    for (size_t at = 0; (at = content.find(kOpen, at)) != std::string::npos; at += kOpen.size())
      content.replace(at, kOpen.size(), said);
    write_file(path, content);
    return failure(cut(Documents::kPad, std::nullopt, 512), "packed").message();
  };
  ASSERT_NE(whole.find(kOpen), std::string::npos) << "the first batch goes on";
  for (const char* said : {"7", "-", "x", ","})
    EXPECT_THAT(with(std::string("\1\0\0\0", 4) + said + '\0'),
                AllOf(Names("lockstep.open"), Says("2 batches")))
        << said;
}

}  // namespace
}  // namespace lockstep::data
