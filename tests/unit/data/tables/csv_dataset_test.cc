#include "data/formats/tables/csv_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "data/dataset/facts.h"
#include "data/loader/sample_reader.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/npy_samples.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CsvFiles : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    const std::string path = dir_.path("data/" + name);
    fs::create_directories(fs::path(path).parent_path());
    write_file(path, content);
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& name = "", Split split = Split::kTrain,
                                        const SampleCut& cut = {}) {
    return open_dataset(spec_of(dir_.path("data/" + name)), split, dir_.path("cache"), {}, cut);
  }
  std::string failure(const std::string& name = "", Split split = Split::kTrain) {
    const auto dataset = open(name, split);
    return dataset.is_ok() ? "no failure" : dataset.status().message();
  }
  std::string fingerprint(const std::string& content) {
    put("x.csv", content);
    SampleCut cut;
    if (content.find("label") == std::string::npos) cut.columns.label = "3";
    return (*open("x.csv", Split::kTrain, cut))->fingerprint();
  }

  TemporaryDirectory dir_;
};

std::vector<float> row(const Dataset& dataset, uint64_t i) {
  std::vector<float> values(dataset.shape().elements());
  std::memcpy(values.data(), stored_sample(dataset, i), dataset.shape().stored_bytes());
  return values;
}

TEST_F(CsvFiles, AreRowsOfColumnsWithOneLabel) {
  put("train_1.csv", "a,b,label\n1,2,yes\n3,4,no\n");
  put("train_2.csv", "a,b,label\n\n5,6,yes\n");
  put("test.csv", "a,b,label\n7,8,yes\n");
  const auto train = open();
  ASSERT_TRUE(train.is_ok()) << train.status().message();
  EXPECT_EQ((*train)->format(), "csv");
  EXPECT_EQ((*train)->samples(), 3U);
  EXPECT_EQ((*train)->shape().elements(), 2U);
  EXPECT_EQ((*train)->shape().stored_bytes(), 8U);
  EXPECT_THAT(row(**train, 2), ElementsAre(5, 6));
  EXPECT_EQ(label_of(**train, 2), 1U);
  EXPECT_THAT((*train)->class_names(), ElementsAre("no", "yes"));
  EXPECT_THAT((*train)->name_of(1), Names("train_1.csv", "line 3"));
  EXPECT_THAT((*train)->name_of(2), Names("train_2.csv", "line 3"));
  const auto eval = open("", Split::kEval);
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_EQ(label_of(**eval, 0), 1U) << "by the classes of training";
  EXPECT_TRUE(check_eval_fits_train(**train, **eval).is_ok());
  put("test.csv", "a,b,label\n7,8,maybe\n");
  EXPECT_THAT(failure("", Split::kEval), Names("test.csv", "\"maybe\"", "line 2"));
}

TEST_F(CsvFiles, AreFoundByTheirEndingAndWhatIsInThem) {
  const std::string table = "1,2,0\n3,4,1\n";
  const auto format = [&](const std::string& name) {
    return detect_format(dir_.path("data/" + name)).value();
  };
  put("one/x.csv", table);
  put("tabs/x.tsv", "1\t2\t0\n");
  put("split/train/x.csv", table);
  put("split/val/x.csv", table);
  for (const char* name : {"one", "one/x.csv", "tabs", "tabs/x.tsv", "split"})
    EXPECT_EQ(format(name), "csv") << name;
  EXPECT_TRUE(*serves_both(dir_.path("data/one"), "csv"));
  EXPECT_FALSE(*serves_both(dir_.path("data/split"), "csv"));
  EXPECT_TRUE(has_eval_files(dir_.path("data/split")));
  EXPECT_FALSE(has_eval_files(dir_.path("data/one")));

  // Beside other data they only describe them, and a name does not make an array a table.
  put("books/x.txt", "text of more bytes than the table has");
  put("books/list.csv", table);
  EXPECT_EQ(format("books"), "text");
  put("pictures/cat/1.jpg", jpeg_picture(20, 20));
  put("pictures/list.csv", table);
  EXPECT_EQ(format("pictures"), "image_folder");
  put("odd.csv", npy_sample("tokens_uint16"));
  EXPECT_EQ(format("odd.csv"), "tokens");
}

TEST_F(CsvFiles, AManifestBesideThemDoesNotMakeThemText) {
  put("split/train/x.csv", "1,2,0\n3,4,1\n5,6,0\n");
  put("split/val/x.csv", "5,6,1\n");
  const std::string before = (*open("split"))->fingerprint();
  for (const char* name : {"split/manifest.txt", "split/train/manifest.txt"})
    put(name, "./train/x.csv\n./val/x.csv\n./manifest.txt\n");
  for (const char* name : {"split", "split/train"})
    EXPECT_EQ(detect_format(dir_.path("data/" + std::string(name))).value(), "csv") << name;
  EXPECT_EQ((*open("split"))->fingerprint(), before);
}

TEST_F(CsvFiles, TheFingerprintIsOfTheRowsAndNotOfHowTheyAreWritten) {
  const std::string was = fingerprint("1,2,a\n3,4,b\n");
  EXPECT_EQ(fingerprint("x;y;label\r\n\"1.0\"; 2e0 ;\"a\"\r\n3;4;b"), was);
  EXPECT_EQ(fingerprint("label\tx\ty\na\t1\t2\nb\t3\t4\n"), was);
  EXPECT_NE(fingerprint("1,2,a\n3,5,b\n"), was);
  EXPECT_NE(fingerprint("1,2,b\n3,4,a\n"), was);
  EXPECT_NE(fingerprint("1,2,a\n3,4,c\n"), was) << "another class";
  EXPECT_NE(fingerprint("1,2,0\n3,4,1\n"), was);
  EXPECT_NE(fingerprint("3,4,b\n1,2,a\n"), was);
}

TEST_F(CsvFiles, NormalizeGivesEveryColumnMeanZeroAndVarianceOne) {
  put("x.csv", "a,b,c,label\n1,0.1,-4e30,0\n3,0.1,4e30,1\n");
  const auto dataset = open("x.csv");
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->statistics()[0], (ChannelStatistics{2, 1}));
  EXPECT_EQ((*dataset)->statistics()[1], (ChannelStatistics{double{0.1F}, 0}));
  for (const auto& [words, first, second] :
       {std::tuple<std::vector<std::string>, std::vector<float>, std::vector<float>>{
            {"normalize"}, {-1, 0, -1}, {1, 0, 1}},
        {{}, {1, 0.1F, -4e30F}, {3, 0.1F, 4e30F}}}) {
    for (const ImageForm form : {ImageForm::kFloats, ImageForm::kStored}) {
      const auto reader = SampleReader::create(**dataset, words, (*dataset)->statistics(), form);
      ASSERT_TRUE(reader.is_ok()) << reader.status().message();
      ASSERT_EQ(reader->input_bytes(), 3 * sizeof(float)) << "never as bytes";
      std::vector<float> read(6);
      std::vector<int64_t> labels(2);
      const auto range =
          reader->read_range(0, 2, reinterpret_cast<std::byte*>(read.data()), labels.data());
      ASSERT_TRUE(range.is_ok()) << range.message();
      EXPECT_EQ(std::vector<float>(read.begin(), read.begin() + 3), first);
      EXPECT_EQ(std::vector<float>(read.begin() + 3, read.end()), second);
      EXPECT_THAT(labels, ElementsAre(0, 1));
    }
  }
}

TEST_F(CsvFiles, WhatIsForImagesIsRefused) {
  put("x.csv", "a,b,c,label\n1,2,3,0\n4,5,6,1\n");
  const auto dataset = open("x.csv");
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  for (const char* word : {"flip", "cutout=2", "mixup", "cutmix"}) {
    const auto reader =
        SampleReader::create(**dataset, {"normalize", word}, (*dataset)->statistics());
    if (std::string(word) == "flip" || std::string(word) == "cutout=2") {
      EXPECT_EQ(reader.status().code(), Code::kUsage);  // normalize is the last of these
      continue;
    }
    EXPECT_THAT(reader.status().message(),
                testing::AllOf(HasSubstr(word), Says("rows of a table")));
  }
  SampleCut cut;
  cut.frame = {CropKind::kCenter, 4, 8};
  EXPECT_THAT(open("x.csv", Split::kTrain, cut).status().message(),
              AllOf(Says("rows of a table"), Advises("resize")));
}

TEST_F(CsvFiles, WhatIsWrongIsSaidWithTheFileLineAndColumn) {
  put("x.csv", "a,label\n1,0\nx,1\n");
  EXPECT_THAT(failure("x.csv"), AllOf(Names("data/x.csv", "\"x\"", "line 3, column 1", "\"a\""),
                                      Says("not a number")));
  put("x.csv", "");
  EXPECT_THAT(failure("x.csv"), AllOf(Names("data/x.csv"), Says("empty")));
  EXPECT_EQ(open("none.csv").status().code(), Code::kNoInput);
}

TEST_F(CsvFiles, ATableAboveTheLimitOfMemoryIsReadFromItsCopy) {
  std::string line;
  for (int i = 0; i < 2000; ++i) line += "0.25" + std::string(40, '0') + ",";
  std::string text;
  uint64_t rows = 0;
  while (text.size() <= kCsvBytes) text += line + std::to_string(rows++ % 3) + "\n";
  put("x.csv", text);
  const auto dataset = open("x.csv");
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->samples(), rows);
  EXPECT_THAT(row(**dataset, rows - 1), testing::AllOf(testing::SizeIs(2000), testing::Each(0.25)));
  EXPECT_EQ(label_of(**dataset, 4), 1U);
  EXPECT_EQ(
      open_dataset(spec_of(dir_.path("data/x.csv")), Split::kTrain, "", {}, {}).status().code(),
      Code::kUsage);
}

}  // namespace
}  // namespace lockstep::data
