// Files that lie next to data do not turn them into data of another format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/open/detect_format.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/format_batches.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

class StrayFiles : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(dir_.path(name)).parent_path());
    write_file(dir_.path(name), content);
  }
  void put_strays() {
    put("LICENSE.txt", "Do as you like.\n");
    put("README.txt", std::string(5'000, 'r'));
    put("words.txt", std::string(9'000, 'w'));
    put("data_description.txt", "a: height\n");
    put("mean.npy", every_format::npy_bytes("<f4", "3,", std::string(12, '\0')));
    put("ids.npy", every_format::npy_bytes("<i8", "2,", std::string(16, '\0')));
    put("embeddings.npy", every_format::npy_bytes("<f4", "2, 2", std::string(16, '\0')));
    put("notes.md", "words");
  }
  Result<std::string> format() { return detect_format(dir_.path()); }

  TemporaryDirectory dir_;
};

TEST_F(StrayFiles, DoNotMakeImagesText) {
  for (const char* name : {"a/0.jpg", "a/1.jpg", "b/0.jpg"}) put(name, jpeg_picture(20, 20, 1));
  put_strays();
  EXPECT_EQ(*format(), "image_folder");
  put("captions.txt", std::string(fs::file_size(dir_.path("a/0.jpg")) * 4, 'c'));
  EXPECT_EQ(*format(), "image_folder") << "not twice as many";
}

TEST_F(StrayFiles, DoNotMakeTablesText) {
  put("t.csv", "a,b,label\n1,2,0\n3,4,1\n");
  put_strays();
  EXPECT_EQ(*format(), "csv");
}

TEST_F(StrayFiles, DoNotMakeParquetText) {
  put("train.parquet", "PAR1" + std::string(1'000, '\0') + "PAR1");
  put_strays();
  EXPECT_THAT(format(), FailsWith(Code::kUsage, Advises("lockstep data pack")));
  EXPECT_TRUE(holds_parquet(dir_.path()));
  put("labels.csv", std::string(100'000, ','));
  EXPECT_TRUE(holds_parquet(dir_.path())) << "a table describes it";
}

TEST_F(StrayFiles, MayBeShardsOrTokensOfAnotherDataSet) {
  for (int i = 0; i < 9; ++i)
    put("c" + std::to_string(i % 2) + "/" + std::to_string(i) + ".jpg", jpeg_picture(90, 90, 1));
  put("offsets.bin", "1234");
  EXPECT_EQ(*format(), "image_folder");
  put("extra.arrow", arrow_sample("list_uint16"));
  EXPECT_EQ(*format(), "image_folder");
}

TEST_F(StrayFiles, TextIsWhatTokensWereMadeOf) {
  put("train.bin", std::string(600, 'x'));
  put("val.bin", std::string(60, 'x'));
  put("input.txt", std::string(100'000, 'x'));
  EXPECT_EQ(*format(), "tokens");
}

TEST_F(StrayFiles, AreRefusedWhereEitherMayBeMeant) {
  put("a.txt", std::string(100, 'x'));
  put("t.csv", "a,b,label\n" + std::string(150, '1'));
  EXPECT_THAT(format(), FailsWith(Code::kUsage, Names(dir_.path(), "text (a.txt", "csv (t.csv"),
                                  Advises("data.train.format")));
  EXPECT_EQ(*resolve_format(dir_.path(), "csv"), "csv");
  put("b.txt", std::string(1'000, 'x'));
  EXPECT_EQ(*format(), "text");
}

TEST_F(StrayFiles, AreReadWhereNothingElseIs) {
  put("README.txt", std::string(100, 'r'));
  EXPECT_EQ(*format(), "text");
  TemporaryDirectory arrays;
  write_file(arrays.path("mean.npy"), every_format::npy_bytes("<f4", "3,", std::string(12, '\0')));
  EXPECT_EQ(*detect_format(arrays.path()), "tokens") << "opening it says why not";
}

class StrayBeside : public BatchesOfAFormat {};

// Runs with any format that a directory tells by itself.
TEST_P(StrayBeside, EveryFormatStraysChangeNothing) {
  const Format& format = every_format_by_name().at(GetParam());
  const std::string dir = dir_.path("data");
  const auto before = resolve_format(dir, format.name);
  for (const char* name : {"LICENSE.txt", "README.txt", "words.txt"})
    if (*before != "text") write_file(dir + "/" + name, std::string(9'000, 'w'));
  write_file(dir + "/mean.npy", every_format::npy_bytes("<f4", "3,", std::string(12, '\0')));
  EXPECT_EQ(*resolve_format(dir, format.name), *before);
}

INSTANTIATE_TEST_SUITE_P(Formats, StrayBeside, testing::ValuesIn([] {
                           auto names = every_format_name();
                           // Names decide which arrays next to each other belong together.
                           std::erase_if(names, [](const std::string& name) {
                             return name.find("npy") != std::string::npos;
                           });
                           return names;
                         }()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace lockstep::data
