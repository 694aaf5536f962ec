#include "data/formats/tokens/megatron_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/loader/sample_reader.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Little-endian, by hand.
std::string le(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// Three sequences in two documents; a test changes what it is about.
struct Index {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t type = 8;
  uint64_t sequences = 3;
  uint64_t documents = 3;
  std::vector<int32_t> sizes = {4, 0, 7};
  std::vector<uint64_t> pointers = {0, 8, 8};
  std::vector<uint64_t> firsts = {0, 2, 3};
  std::string more;

  std::string bytes() const {
    std::string out = magic + le(version, 8) + le(type, 1) + le(sequences, 8) + le(documents, 8);
    for (const int32_t size : sizes) out += le(static_cast<uint32_t>(size), 4);
    for (const uint64_t pointer : pointers) out += le(pointer, 8);
    for (const uint64_t first : firsts) out += le(first, 8);
    return out + more;
  }
};

Result<MegatronIndex> parse_index(const std::string& file) {
  return parse_megatron_index(
      std::span(reinterpret_cast<const uint8_t*>(file.data()), file.size()));
}

std::string index_error(const std::string& file) {
  const auto index = parse_index(file);
  EXPECT_EQ(index.status().code(), Code::kBadData) << index.status().message();
  return index.status().message();
}

template <typename Change>
std::string error_after(Change change) {
  Index index;
  change(index);
  return index_error(index.bytes());
}

std::string counted(int count, int bytes, uint64_t from = 100) {
  std::string out;
  for (int i = 0; i < count; ++i) out += le(from + static_cast<uint64_t>(i), bytes);
  return out;
}

TEST(MegatronIndex, SaysHowManyTokensThereAreAndOfHowManyBytes) {
  const auto index = parse_index(Index().bytes());
  ASSERT_TRUE(index.is_ok()) << index.status().message();
  EXPECT_EQ(index->sequences, 3U);
  EXPECT_EQ(index->tokens, 11U);
  EXPECT_EQ(index->bin_bytes(), 22U);
  Index four;
  four.type = 4;
  four.pointers = {0, 16, 16};
  EXPECT_EQ(parse_index(four.bytes())->bin_bytes(), 44U);
}

TEST(MegatronIndex, RefusesWhatItCannotRead) {
  EXPECT_THAT(error_after([](Index& i) { i.magic = std::string("TNTIDX\0\0\0", 9); }),
              Says("not an index"));
  EXPECT_THAT(error_after([](Index& i) { i.version = 2; }), Says("version 2"));
  EXPECT_THAT(error_after([](Index& i) { i.type = 1; }), Says("uint8"));
  EXPECT_THAT(error_after([](Index& i) { i.type = 3; }), Says("int16"));
  EXPECT_THAT(error_after([](Index& i) { i.type = 5; }), Says("int64"));
  EXPECT_THAT(error_after([](Index& i) { i.type = 7; }), Says("float32"));
  for (const uint8_t type : {0, 9, 255})
    EXPECT_THAT(error_after([&](Index& i) { i.type = type; }), HasSubstr("of type"));
  EXPECT_THAT(error_after([](Index& i) { i.more = "abc"; }), HasSubstr("multimodal"));
  EXPECT_THAT(error_after([](Index& i) { i.more = "abcd"; }), Says("4 bytes"));
}

TEST(MegatronIndex, RefusesEveryTruncation) {
  const std::string whole = Index().bytes();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_THAT(index_error(whole.substr(0, bytes)),
                HasSubstr(bytes < 9 ? "is not an index" : "is truncated"));
}

TEST(MegatronIndex, RefusesCountsThatWouldOverflow) {
  for (const uint64_t many : {uint64_t{4}, uint64_t{1} << 61, ~uint64_t{0}, ~uint64_t{0} / 12 + 1,
                              ~uint64_t{0} / 8 + 1}) {
    EXPECT_THAT(error_after([&](Index& i) { i.sequences = many; }), HasSubstr("is truncated"));
    EXPECT_THAT(error_after([&](Index& i) { i.documents = many; }), HasSubstr("is truncated"));
  }
}

TEST(MegatronIndex, RefusesTablesThatDoNotAgree) {
  EXPECT_THAT(error_after([](Index& i) { i.sizes[1] = -1; }),
              AllOf(Names("sequence 1"), Says("length")));
  EXPECT_THAT(error_after([](Index& i) { i.pointers[0] = 2; }),
              AllOf(Names("sequence 0"), Says("place")));
  EXPECT_THAT(error_after([](Index& i) { i.pointers[2] = 10; }),
              AllOf(Names("sequence 2"), Says("place", "10, but the sequences", "at 8")));
  EXPECT_THAT(error_after([](Index& i) { i.pointers[2] = ~uint64_t{0}; }), HasSubstr("sequence 2"));
  EXPECT_THAT(error_after([](Index& i) { i.firsts = {1, 2, 3}; }), Names("document 0"));
  EXPECT_THAT(error_after([](Index& i) { i.firsts = {0, 4, 3}; }), Names("document 1"));
  EXPECT_THAT(error_after([](Index& i) { i.firsts = {0, 2, 1}; }), Names("document 2"));
  EXPECT_THAT(error_after([](Index& i) {
                i.firsts = {0, 1, 2};
              }),
              AllOf(Names("sequence 2"), Says("end")));
}

TEST(MegatronIndex, RefusesMoreTokensThanAFileMayHave) {
  Index index;
  index.type = 4;
  index.sizes.assign(10'000, 2'147'483'647);
  index.pointers.clear();
  for (uint64_t i = 0; i < 10'000; ++i) index.pointers.push_back(uint64_t{4} * 2'147'483'647 * i);
  index.sequences = 10'000;
  index.firsts = {0, 10'000};
  index.documents = 2;
  EXPECT_THAT(index_error(index.bytes()), Says("limit"));
}

class MegatronDataset : public testing::Test {
 protected:
  void put(const std::string& prefix, const Index& index, const std::string& bin) {
    write_file(dir_.path(prefix + ".idx"), index.bytes());
    write_file(dir_.path(prefix + ".bin"), bin);
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& path, const std::string& format = "auto",
                                        Split split = Split::kTrain) {
    return open_dataset(spec_of(dir_.path(path), format), split, dir_.path("cache"), {}, {4, 0});
  }

  TemporaryDirectory dir_;
};

TEST_F(MegatronDataset, IsReadAsOneStreamByAnyOfItsNames) {
  put("my_text_document", Index(), counted(11, 2));
  for (const char* name :
       {"my_text_document", "my_text_document.bin", "my_text_document.idx", ""}) {
    const auto dataset = open(name);
    ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
    EXPECT_EQ((*dataset)->format(), "megatron");
    EXPECT_EQ((*dataset)->samples(), 2U);
    EXPECT_EQ((*dataset)->classes(), 111U);
    EXPECT_THAT((*dataset)->files(), ElementsAre(dir_.path("my_text_document.bin")));
    const auto reader = SampleReader::create(**dataset, {}, {});
    int64_t tokens[4], labels[4];
    ASSERT_TRUE(reader->read(1, reinterpret_cast<std::byte*>(tokens), labels).is_ok());
    EXPECT_THAT(tokens, ElementsAre(104, 105, 106, 107));
    EXPECT_THAT(labels, ElementsAre(105, 106, 107, 108));
  }
  const auto seen = inspect_data(spec_of(dir_.path("my_text_document")), "", {}, {4, 0});
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_EQ(seen->splits[0].split, "data");
  EXPECT_EQ(seen->splits[0].format, "megatron");
}

TEST_F(MegatronDataset, PairsOfADirectoryFollowTheirNamesAndSplits) {
  put("b_train", Index(), counted(11, 2));
  put("a_train", Index(), counted(11, 2, 500));
  put("a_val", Index(), counted(11, 2, 7));
  const auto train = open("");
  ASSERT_TRUE(train.is_ok()) << train.status().message();
  EXPECT_EQ(*detect_format(dir_.path()), "megatron");
  EXPECT_TRUE(has_eval_files(dir_.path()));
  EXPECT_THAT((*train)->files(), ElementsAre(dir_.path("a_train.bin"), dir_.path("b_train.bin")));
  EXPECT_EQ((*train)->samples(), 4U);
  EXPECT_THAT((*open("", "megatron", Split::kEval))->files(), ElementsAre(dir_.path("a_val.bin")));
  std::filesystem::remove(dir_.path("b_train.bin"));
  EXPECT_THAT(open(""), FailsWith(Code::kNoInput, Names(dir_.path("b_train.bin"))));
}

TEST_F(MegatronDataset, DamageIsToldWithTheFileThatHasIt) {
  put("x", Index(), counted(10, 2));
  EXPECT_THAT(open("x"), FailsWith(Code::kBadData, Names(dir_.path("x.bin"), dir_.path("x.idx")),
                                   Says("truncated", "20 bytes", "22")));
  put("x", Index(), counted(12, 2));
  EXPECT_THAT(open("x").status().message(), AllOf(Names("x.bin"), Says("24 bytes")));
  Index damaged;
  damaged.pointers[1] = 7;
  put("x", damaged, counted(11, 2));
  EXPECT_THAT(open("x").status().message(), AllOf(Names(dir_.path("x.idx")), Says("damaged")));
  put("x", Index(), counted(11, 2));
  std::filesystem::remove(dir_.path("x.idx"));
  EXPECT_EQ(open("x.bin", "megatron").status().code(), Code::kNoInput);
  EXPECT_THAT(open("x.bin", "megatron").status().message(),
              AllOf(Names("x.idx"), Says("not there")));
  EXPECT_EQ((*open("x.bin"))->format(), "tokens");  // nothing says otherwise
}

TEST_F(MegatronDataset, ANegativeTokenIsBeyondEveryVocabulary) {
  Index index;
  index.type = 4;
  index.pointers = {0, 16, 16};
  put("x", index, counted(11, 4));
  ASSERT_TRUE(open("x").is_ok()) << open("x").status().message();
  EXPECT_EQ((*open("x"))->shape().token_bytes, 4U);
  put("x", index, counted(3, 4) + le(0xffffffff, 4) + counted(7, 4));
  EXPECT_EQ(open("x").status().code(), Code::kBadData);
  EXPECT_THAT(open("x").status().message(), AllOf(Names("x.bin", "offset 12"), Says("token -1")));
}

}  // namespace
}  // namespace lockstep::data
