// A data set counts and names what it does not take, and directories that may be no classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/formats/images/image_folder.h"
#include "data/loader/verify.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/tar_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/format_batches.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LeftOutFiles : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(dir_.path("d/" + name)).parent_path());
    write_file(dir_.path("d/" + name), content);
  }
  void put_images(const std::vector<std::string>& names) {
    for (const std::string& name : names) put(name, jpeg_picture(20, 20, 1));
  }
  Result<Inspection> inspect(const std::string& below = "", const SampleCut& cut = {.block = 4}) {
    return inspect_data(spec_of(dir_.path("d") + below), dir_.path("cache"), {}, cut);
  }
  // The same from an index that is there, and by verify.
  void expect_left(uint64_t samples, uint64_t files, const std::vector<std::string>& words) {
    for (int round = 0; round < 2; ++round) {
      const auto seen = inspect();
      ASSERT_TRUE(seen.is_ok()) << seen.status().message();
      EXPECT_EQ(seen->splits[0].samples, samples);
      EXPECT_EQ(files_in(seen->left_out), files) << left_out_text(seen->left_out);
      for (const std::string& word : words) EXPECT_THAT(to_text(*seen), HasSubstr(word));
    }
    const auto verified =
        verify_data(spec_of(dir_.path("d")), dir_.path("cache"), 2, {}, {.block = 4});
    ASSERT_TRUE(verified.is_ok()) << verified.status().message();
    EXPECT_EQ(files_in(verified->back().left_out), files);
  }

  TemporaryDirectory dir_;
};

TEST_F(LeftOutFiles, BesideImagesAreCountedByTheirKind) {
  put_images({"a/0.jpg", "a/1.JFIF", "b/0.jpeg", "b/more/1.jpg"});
  put("a/2.tif", "II*");
  put("b/2.TIF", "II*");
  put("b/labels.txt", "words");
  put("README.md", "words");
  fs::create_symlink("/not-mounted/3.jpg", dir_.path("d/b/3.jpg"));
  put("a/.hidden.tif", "II*");
  expect_left(4, 5,
              {"5 files left out", "2 *.tif (such as a/2.tif)", "1 *.md (README.md)",
               "1 *.txt (b/labels.txt)", "1 link that leads nowhere (b/3.jpg)"});
}

TEST_F(LeftOutFiles, MoreThanWhatIsTakenAreRefused) {
  put_images({"a/0.jpg", "b/0.jpg"});
  for (const char* name : {"a/1.tif", "a/2.gif"}) put(name, "II*");
  EXPECT_TRUE(inspect().is_ok());
  put("b/1.heic", "x");
  EXPECT_THAT(inspect(), FailsWith(Code::kBadData, Names(dir_.path("d"), "a/1.tif", "*.gif"),
                                   Advises("convert")));
  fs::remove(dir_.path("d/b/1.heic"));
  fs::create_symlink("/not-mounted/1.jpg", dir_.path("d/b/1.jpg"));
  EXPECT_THAT(inspect(), FailsWith(Code::kBadData, Names("b/1.jpg"), Says("link")));
  fs::remove(dir_.path("d/b/1.jpg"));
  put_images({"outside.jpg"});
  EXPECT_THAT(inspect(), FailsWith(Code::kBadData, Names("outside.jpg")));
  fs::remove(dir_.path("d/outside.jpg"));
  for (int i = 0; i < 9; ++i) put("a/" + std::to_string(i) + ".xml", "a box");
  EXPECT_TRUE(inspect().is_ok()) << "they describe the images";
}

TEST_F(LeftOutFiles, SamplesOfShardsWithoutAnImageAreCounted) {
  std::string archive;
  for (const char* name : {"0.jpg", "1.JPG", "v1.5_1.jpg", "2.gif"})
    archive += tar_entry({name, jpeg_picture(20, 20, 1)}) +
               tar_entry({std::string(name).substr(0, std::string(name).rfind('.')) + ".cls", "1"});
  put("train.tar", archive + tar_entry({"LICENSE", "words"}) + kTarEnd);
  put("list.csv", "a,b\n");
  expect_left(2, 4,
              {"2 sample without an image (such as 2.gif)", "1 *.csv (list.csv)",
               "1 without an ending (LICENSE)"});
  put("train.tar", archive + tar_entry({"3.cls", "1"}) + kTarEnd);
  EXPECT_THAT(inspect(),
              FailsWith(Code::kBadData, Names(dir_.path("d")), Says("without an image")));
}

TEST_F(LeftOutFiles, TextInDirectoriesBelowIsCounted) {
  put("README.txt", "See books/. ");
  put("books/1.txt", "once upon a time ");
  put("books/old/2.txt", "and so on ");
  put("books/cover.pdf", "x");
  fs::create_symlink("/not-mounted/3.txt", dir_.path("d/3.txt"));
  expect_left(2, 3, {"2 in directory books/ (such as books/1.txt)", "leads nowhere (3.txt)"});
}

TEST_F(LeftOutFiles, WhatHuggingFaceKeepsOfItsMapsIsNoSecondCopy) {
  put("data-00000-of-00001.arrow", arrow_sample("encoded"));
  put("cache-9f8b2a71c3d4e5f6.arrow", arrow_sample("encoded"));
  put("cache-9f8b2a71c3d4e5f6_00000_of_00002.arrow", arrow_sample("encoded"));
  put("state.json", "{}");
  const SampleCut cut{.block = 0, .vocab = 0, .frame = {CropKind::kCenter, 4, 8}};
  auto seen = inspect("", cut);
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  const uint64_t samples = seen->splits[0].samples;
  EXPECT_THAT(left_out_text(seen->left_out),
              AllOf(HasSubstr("2 cache of Hugging Face"), HasSubstr("1 *.json (state.json)")));
  put("cached-rows.arrow", arrow_sample("encoded"));
  EXPECT_EQ(inspect("", cut)->splits[0].samples, 2 * samples) << "another name";
  for (const char* name : {"data-00000-of-00001.arrow", "cached-rows.arrow"})
    fs::remove(dir_.path(std::string("d/") + name));
  EXPECT_EQ(inspect("", cut)->splits[0].samples, 2 * samples) << "nothing else is there";
}

class LeftBeside : public BatchesOfAFormat {};

TEST_P(LeftBeside, EveryFormatAFileIsSaid) {
  const Format& format = every_format_by_name().at(GetParam());
  SampleCut cut = format.cut;
  if (format.has_tokenizer) cut.tokenizer = dir_.path("tokenizer");
  const auto spec = spec_of(dir_.path("data"), format.name);
  const auto before = inspect_data(spec, dir_.path("cache"), {}, cut);
  ASSERT_TRUE(before.is_ok()) << before.status().message();
  EXPECT_EQ(files_in(before->left_out), 0U) << left_out_text(before->left_out);
  write_file(dir_.path("data/notes.md"), "words");
  const auto now = inspect_data(spec, dir_.path("cache"), {}, cut);
  ASSERT_TRUE(now.is_ok()) << now.status().message();
  EXPECT_EQ(left_out_text(now->left_out), "1 *.md (notes.md)");
}

INSTANTIATE_TEST_SUITE_P(Formats, LeftBeside, testing::ValuesIn(every_format_name()),
                         [](const auto& name) { return name.param; });

class SplitNames : public LeftOutFiles {};

TEST_F(SplitNames, OfDirectoriesAreKnownInAnyCase) {
  for (const auto& [train, eval] :
       {std::pair("train", "dev"), std::pair("Training", "Testing"), std::pair("Train", "Val"),
        std::pair("TRAIN", "VALIDATION"), std::pair("training", "evaluation")}) {
    fs::remove_all(dir_.path("d"));
    for (const char* name : {"apple", "pear"}) {
      put_images({std::string(train) + "/" + name + "/0.jpg",
                  std::string(train) + "/" + name + "/1.jpg",
                  std::string(eval) + "/" + name + "/0.jpg"});
    }
    const auto seen = inspect();
    ASSERT_TRUE(seen.is_ok()) << seen.status().message();
    ASSERT_EQ(seen->splits.size(), 2U) << train;
    EXPECT_EQ(seen->splits[0].samples, 4U);
    EXPECT_EQ(seen->splits[0].classes, 2U);
    EXPECT_EQ(seen->splits[1].samples, 2U);
    EXPECT_THAT(seen->warnings, IsEmpty());
    EXPECT_TRUE(has_eval_files(dir_.path("d")));
  }
  fs::remove_all(dir_.path("d"));
  put("Train/x.csv", "a,label\n1,0\n2,1\n");
  put("Test/x.csv", "a,label\n1,0\n");
  EXPECT_EQ(inspect()->splits.size(), 2U);
}

TEST_F(SplitNames, OfFilesAreWordsInAnyCase) {
  put("train.csv", "a,label\n1,0\n2,1\n");
  put("Dev.csv", "a,label\n1,0\n");
  auto seen = inspect();
  ASSERT_EQ(seen->splits.size(), 2U);
  EXPECT_EQ(seen->splits[0].samples, 2U);
  fs::rename(dir_.path("d/train.csv"), dir_.path("d/web.csv"));
  seen = inspect();
  EXPECT_EQ(seen->splits.size(), 1U) << "where nothing is called train, dev is a name";
  EXPECT_EQ(seen->splits[0].samples, 3U);
}

TEST_F(SplitNames, AsClassesAreDoubted) {
  const auto doubt = [&] {
    const auto seen = inspect();
    EXPECT_TRUE(seen.is_ok()) << seen.status().message();
    EXPECT_EQ(seen->warnings.size(), 1U);
    EXPECT_EQ(doubt_of(dir_.path("d"), "image_folder"), seen->warnings[0]);
    return seen->warnings[0];
  };
  put_images({"train/apple/0.jpg", "train/pear/0.jpg"});
  EXPECT_THAT(doubt(),
              AllOf(Names(dir_.path("d/train")), Says("splits"), Advises("data.train.format")));
  put_images({"extra/apple/0.jpg"});
  EXPECT_THAT(doubt(), Says("splits"));
  fs::remove_all(dir_.path("d"));
  put_images({"images/apple/0.jpg", "images/pear/0.jpg"});
  EXPECT_THAT(doubt(), AllOf(Names(dir_.path("d/images")), Says("one class")));
  put("docs/page.txt", "words");
  EXPECT_THAT(doubt(), AllOf(Names(dir_.path("d/images")), Says("only images has images")));
  put_images({"more/0.jpg"});
  EXPECT_THAT(inspect()->warnings, testing::ElementsAre(Says("no sample has class \"docs\"")));
}

}  // namespace
}  // namespace lockstep::data
