// Directories of images with masks, and masks in WebDataset: which belong together, what is
// refused, and what stays as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset/dataset.h"
#include "data/loader/sample_reader.h"
#include "data/loader/verify.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/tar_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/mask_writer.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

constexpr ImageFrame kMaskCut{CropKind::kCenter, 16, 20};
const std::vector<std::string> kMaskTransforms{"resize=20", "center_crop=16"};

std::string flat_mask(uint8_t value, uint32_t width, uint32_t height) {
  return mask_png(std::vector<uint8_t>(size_t{width} * height, value), width, height);
}

class ImageMaskTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(dir_.path("data/" + name)).parent_path());
    write_file(dir_.path("data/" + name), content);
  }

  // Images of several sizes, each with a mask that has one value.
  void put_pairs(const std::string& below = "", uint32_t first = 0, uint32_t count = 6) {
    for (uint32_t i = first; i < first + count; ++i) {
      const std::string name = (i % 2 == 0 ? "x/" : "") + std::to_string(i);
      put(below + "images/" + name + ".jpg", jpeg_picture(40 + i, 50 - i, i));
      put(below + "masks/" + name + ".png",
          flat_mask(static_cast<uint8_t>(10 + i), 40 + i, 50 - i));
    }
  }

  Result<std::unique_ptr<Dataset>> open(ColumnNames columns = {.targets = {"masks"}},
                                        Split split = Split::kTrain,
                                        const ImageFrame& frame = kMaskCut) {
    SampleCut cut{.frame = frame};
    cut.columns = std::move(columns);
    return open_dataset(spec_of(dir_.path("data")), split, dir_.path("cache"), {}, cut);
  }

  std::string failure(const ColumnNames& columns = {.targets = {"masks"}},
                      Split split = Split::kTrain) {
    const auto dataset = open(columns, split);
    if (dataset.is_ok()) return "no failure";
    EXPECT_EQ(dataset.status().code() == Code::kBadData ||
                  dataset.status().code() == Code::kUsage ||
                  dataset.status().code() == Code::kNoInput,
              true);
    return dataset.status().message();
  }

  // The first value of each field of each sample.
  static std::vector<std::vector<int>> values_of(const Dataset& dataset) {
    auto reader = SampleReader::create(dataset, kMaskTransforms, dataset.statistics());
    EXPECT_TRUE(reader.is_ok()) << reader.status().message();
    const FieldList& fields = *dataset.shape().fields;
    std::vector<std::byte> input(reader->input_bytes());
    std::vector<std::byte> record(fields.record_bytes());
    std::vector<std::vector<int>> all;
    SampleHand hand;
    for (uint64_t i = 0; i < dataset.samples(); ++i) {
      int64_t label = 0;
      const Status status = reader->read(i, input.data(), &label, &hand, {}, {}, record.data());
      EXPECT_TRUE(status.is_ok()) << status.message();
      std::vector<int> values;
      for (size_t f = 0; f < fields.specs().size(); ++f)
        values.push_back(fields.specs()[f].is_label ? static_cast<int>(label)
                                                    : static_cast<int>(record[fields.offset(f)]));
      all.push_back(values);
    }
    return all;
  }

  TemporaryDirectory dir_;
};

using MaskRows = std::vector<std::vector<int>>;

TEST_F(ImageMaskTest, FilesOfOneStemAreASample) {
  put_pairs();
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  const Dataset& data = **dataset;
  EXPECT_EQ(data.format(), "image_mask");
  EXPECT_FALSE(data.shape().has_label());
  EXPECT_EQ(text_of(*data.shape().fields), "masks (uint8 16x16)");
  EXPECT_EQ(values_of(data), (MaskRows{{11}, {13}, {15}, {10}, {12}, {14}}));  // "1", ... "x/0"
}

TEST_F(ImageMaskTest, DirectoriesMayHaveAnyNamesAndBeInputsToo) {
  put_pairs();
  fs::rename(dir_.path("data/images"), dir_.path("data/photos"));
  fs::copy(dir_.path("data/masks"), dir_.path("data/depth"), fs::copy_options::recursive);
  const auto dataset = open({.inputs = {"photos", "depth"}, .targets = {"masks"}});
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  const auto& specs = (*dataset)->shape().fields->specs();
  ASSERT_EQ(specs.size(), 2U);
  EXPECT_EQ(specs[0].role, FieldRole::kInput);
  EXPECT_EQ(specs[1].role, FieldRole::kTarget);
  EXPECT_EQ(values_of(**dataset).front(), (std::vector<int>{11, 11}));
  EXPECT_THAT(failure(), AllOf(HasSubstr("no directory images"), HasSubstr("depth, masks, photos"),
                               Advises("data.inputs")));
  EXPECT_THAT(failure({.inputs = {"photos"}, .targets = {"../data"}}), HasSubstr("no directory"));
}

TEST_F(ImageMaskTest, SplitsLieAboveOrBelow) {
  put_pairs("train/", 0, 4);
  put_pairs("val/", 4, 2);
  for (const bool is_above : {true, false}) {
    if (!is_above) {
      for (const char* kind : {"images", "masks"}) {
        for (const char* split : {"train", "val"}) {
          fs::create_directories(dir_.path(std::string("data/") + kind));
          fs::rename(dir_.path(std::string("data/") + split + "/" + kind),
                     dir_.path(std::string("data/") + kind + "/" + split));
        }
      }
      fs::remove(dir_.path("data/train"));
      fs::remove(dir_.path("data/val"));
    }
    const auto train = open();
    const auto eval = open({.targets = {"masks"}}, Split::kEval);
    ASSERT_TRUE(train.is_ok() && eval.is_ok()) << eval.status().message();
    EXPECT_EQ((*train)->samples(), 4U);
    EXPECT_EQ(values_of(**eval), (MaskRows{{15}, {14}})) << is_above;
    EXPECT_TRUE(has_eval_files(dir_.path("data"), {.targets = {"masks"}})) << is_above;
  }
}

// Evaluation on them would be on the training data.
TEST_F(ImageMaskTest, SplitsOfOtherDirectoriesAreNone) {
  put_pairs();
  put("more/train/1.png", flat_mask(1, 9, 9));
  put("more/val/1.png", flat_mask(1, 9, 9));
  EXPECT_FALSE(has_eval_files(dir_.path("data"), {.targets = {"masks"}}));
}

TEST_F(ImageMaskTest, WhatDoesNotBelongTogetherIsNamed) {
  put_pairs();
  fs::rename(dir_.path("data/masks/1.png"), dir_.path("data/masks/zz.png"));
  EXPECT_THAT(failure(), AllOf(Names("data/images/1.jpg"), HasSubstr("an image without a mask"),
                               HasSubstr("has no 1.png")));
  put("masks/1.png", flat_mask(1, 41, 49));
  EXPECT_THAT(failure(), AllOf(Names("data/masks/zz.png"), HasSubstr("a mask without an image")));
  fs::remove(dir_.path("data/masks/zz.png"));
  put("masks/3.png", flat_mask(1, 43, 48));
  EXPECT_THAT(failure(), AllOf(Names("data/masks/3.png"), Names("data/images/3.jpg"),
                               HasSubstr("43 x 48"), HasSubstr("43 x 47")));
  put("masks/3.png", jpeg_picture(43, 47));
  EXPECT_THAT(failure(), AllOf(Names("data/masks/3.png"), HasSubstr("JPEG"), Advises("PNG")));
  put("masks/3.png", png_of(picture(43, 47), 43, 47));
  EXPECT_THAT(failure(), AllOf(Names("data/masks/3.png"), HasSubstr("colours")));
  put("masks/3.png", flat_mask(1, 43, 47));
  put("images/3.png", png_of(picture(43, 47), 43, 47));
  EXPECT_THAT(failure(), AllOf(HasSubstr("3.jpg and 3.png"), HasSubstr("one sample")));
  fs::remove(dir_.path("data/images/3.png"));
  EXPECT_EQ(failure(), "no failure");
}

TEST_F(ImageMaskTest, AMaskThatChangesIsNeverTrainedOn) {
  put_pairs();
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  const std::string before((*dataset)->fingerprint());
  auto reader = SampleReader::create(**dataset, kMaskTransforms, (*dataset)->statistics());
  ASSERT_TRUE(reader.is_ok());
  put("masks/1.png", flat_mask(200, 41, 49) + "more");
  std::vector<std::byte> input(reader->input_bytes());
  std::vector<std::byte> record((*dataset)->shape().record_bytes());
  int64_t label = 0;
  SampleHand hand;
  EXPECT_THAT(reader->read(0, input.data(), &label, &hand, {}, {}, record.data()),
              FailsWith(Code::kBadData, Names("masks/1.png")));
  // A file that is replaced by rename changes its directory, so the index is made again.
  fs::remove(dir_.path("data/masks/1.png"));
  put("masks/1.png", flat_mask(200, 41, 49));
  const auto again = open();
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_NE((*again)->fingerprint(), before);
  EXPECT_EQ(values_of(**again).front(), std::vector<int>{200});
}

TEST_F(ImageMaskTest, AMaskThatIsRewrittenAndGetsItsOldTimeAgainIsNamed) {
  put_pairs();
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  const auto reader = SampleReader::create(**dataset, kMaskTransforms, (*dataset)->statistics());
  ASSERT_TRUE(reader.is_ok());
  const auto read = [&] {
    std::vector<std::byte> input(reader->input_bytes());
    std::vector<std::byte> record((*dataset)->shape().record_bytes());
    int64_t label = 0;
    SampleHand hand;
    return reader->read(0, input.data(), &label, &hand, {}, {}, record.data());
  };
  EXPECT_TRUE(read().is_ok());
  write_and_put_time_back(dir_.path("data/masks/1.png"), 60, 7);
  EXPECT_THAT(read(), FailsWith(Code::kBadData, Names("masks/1.png"), Says("old size and time")));
  EXPECT_NE((*open())->fingerprint(), (*dataset)->fingerprint());
}

// With damage of each kind: headers of images and of masks, and what follows them.
TEST_F(ImageMaskTest, DamagedImagesAndMasksAreNamedTogether) {
  SampleCut cut{.frame = kMaskCut};
  cut.columns.targets = {"masks"};
  const auto inspected = [&] {
    return inspect_data(spec_of(dir_.path("data")), dir_.path("cache"), {}, cut).status();
  };
  put_pairs();
  const std::string image = jpeg_picture(41, 49, 1);
  put("images/1.jpg", image.substr(0, image.size() - 600));
  put("masks/3.png", "no mask");
  EXPECT_THAT(inspected(), FailsWith(Code::kBadData, Names("images/1.jpg", "masks/3.png")));
  put("images/x/2.jpg", "no image");
  EXPECT_THAT(inspected(),
              FailsWith(Code::kBadData, Names("images/1.jpg", "images/x/2.jpg", "masks/3.png")));
}

TEST_F(ImageMaskTest, ADamagedMaskIsNamedWithItsFile) {
  put_pairs();
  std::string damaged = mask_png(std::vector<uint8_t>(41 * 49, 9), 41, 49);
  damaged.resize(damaged.size() - 25);
  put("masks/1.png", damaged);
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  auto reader = SampleReader::create(**dataset, kMaskTransforms, (*dataset)->statistics());
  ASSERT_TRUE(reader.is_ok());
  std::vector<std::byte> input(reader->input_bytes());
  std::vector<std::byte> record((*dataset)->shape().record_bytes());
  int64_t label = 0;
  SampleHand hand;
  EXPECT_THAT(
      reader->read(0, input.data(), &label, &hand, {}, {}, record.data()),
      FailsWith(Code::kBadData, AllOf(Names("masks/1.png"), HasSubstr("cannot be decoded"))));
  SampleCut cut;
  cut.columns.targets = {"masks"};
  const auto seen = verify_data(spec_of(dir_.path("data")), dir_.path("cache"), 2, {}, cut,
                                VerifyDepth::kSamples);
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_EQ(seen->front().damaged, 1U);
  EXPECT_THAT(seen->front().faults.front(), HasSubstr("masks/1.png"));
}

TEST_F(ImageMaskTest, NamesMayBeAnyBytes) {
  for (const std::string name : {"a\nb", "\x1b[31m", "\xff\xfe", "a.b.c", "\xf0\x9f\x8d\x90"}) {
    put("images/" + name + ".jpg", jpeg_picture(30, 30));
    put("masks/" + name + ".png", flat_mask(3, 30, 30));
  }
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ(values_of(**dataset), MaskRows(5, {3}));
}

TEST_F(ImageMaskTest, TwoClassesStayTwoClassesWithoutTheKey) {
  put_pairs();
  const auto dataset = open({});
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->format(), "image_folder");
  EXPECT_EQ((*dataset)->classes(), 2U);
  EXPECT_EQ((*dataset)->shape().fields, nullptr);
  EXPECT_EQ(*detect_format(dir_.path("data")), "image_folder");
}

TEST_F(ImageMaskTest, WhatCannotBeIsRefusedByItsKey) {
  put_pairs();
  EXPECT_THAT(failure({.targets = {"masks"}, .weight = "w"}), AllOf(Names("data.weight")));
  EXPECT_THAT(failure({.inputs = {"images"}}), AllOf(Names("data.targets"), HasSubstr("no masks")));
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok());
  for (const char* word : {"mixup", "cutmix"}) {
    auto words = kMaskTransforms;
    words.emplace_back(word);
    EXPECT_THAT(SampleReader::create(**dataset, words, (*dataset)->statistics()).status(),
                FailsWith(Code::kUsage, HasSubstr("masks")));
  }
}

TEST_F(ImageMaskTest, InspectShowsTheField) {
  put_pairs();
  SampleCut cut{.frame = kMaskCut};
  cut.columns.targets = {"masks"};
  const auto seen = inspect_data(spec_of(dir_.path("data")), dir_.path("cache"), {}, cut);
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_THAT(to_text(*seen), AllOf(HasSubstr("image_mask"), HasSubstr("masks (uint8 16x16)"),
                                    HasSubstr("/masks\n")));
}

class TarMaskTest : public ImageMaskTest {
 protected:
  static std::string sample(uint32_t i, const std::string& ending, const std::string& more = "") {
    const std::string key = "s" + std::to_string(i);
    return tar_entry({key + ".jpg", jpeg_picture(30 + i, 40, i)}) +
           (ending.empty() ? ""
                           : tar_entry({key + "." + ending,
                                        flat_mask(static_cast<uint8_t>(50 + i), 30 + i, 40)})) +
           more;
  }
  static std::string label(uint32_t i) {
    return tar_entry({"s" + std::to_string(i) + ".cls", std::to_string(i % 3)});
  }
};

TEST_F(TarMaskTest, MembersAreMasksByTheirEndingsAndAClassIsTheLabel) {
  put("train-0.tar", sample(0, "mask.png", label(0)) + sample(1, "mask.png", label(1)) + kTarEnd);
  put("train-1.tar", sample(2, "mask.png", label(2)) + kTarEnd);
  const auto masks = open({.targets = {"mask.png"}});
  ASSERT_TRUE(masks.is_ok()) << masks.status().message();
  EXPECT_FALSE((*masks)->shape().has_label());
  EXPECT_EQ(values_of(**masks), (MaskRows{{50}, {51}, {52}}));
  const auto both = open({.targets = {"mask.png", "cls"}});
  ASSERT_TRUE(both.is_ok()) << both.status().message();
  EXPECT_TRUE((*both)->shape().has_label());
  EXPECT_EQ(values_of(**both), (MaskRows{{50, 0}, {51, 1}, {52, 2}}));
  const auto input = open({.inputs = {"jpg", "mask.png"}});
  ASSERT_TRUE(input.is_ok()) << input.status().message();
  EXPECT_EQ(values_of(**input), (MaskRows{{50, 0}, {51, 1}, {52, 2}}));
  const auto plain = open({});
  ASSERT_TRUE(plain.is_ok()) << plain.status().message();
  EXPECT_EQ((*plain)->classes(), 3U);
  EXPECT_THAT(failure({.targets = {"mask.png", "cls", "json"}}), HasSubstr("two labels"));
}

TEST_F(TarMaskTest, WithTheEndingOfAnImage) {
  put("train-0.tar", sample(0, "png") + sample(1, "png") + kTarEnd);
  const auto dataset = open({.targets = {"png"}});
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ(values_of(**dataset), (MaskRows{{50}, {51}}));
}

TEST_F(TarMaskTest, OneThatIsMissingOrAloneIsNamed) {
  put("train-0.tar", sample(0, "mask.png") + sample(1, "") + kTarEnd);
  EXPECT_THAT(failure({.targets = {"mask.png"}}),
              AllOf(Names("train-0.tar"), HasSubstr("s1, an image without a mask"),
                    Advises("s1.mask.png")));
  put("train-0.tar",
      sample(0, "mask.png") + tar_entry({"s1.mask.png", flat_mask(1, 30, 40)}) + kTarEnd);
  EXPECT_THAT(failure({.targets = {"mask.png"}}),
              AllOf(Names("train-0.tar"), HasSubstr("s1.mask.png, a mask without an image")));
  put("train-0.tar", tar_entry({"s1.jpg", jpeg_picture(30, 40)}) +
                         tar_entry({"s1.mask.png", flat_mask(1, 30, 41)}) + kTarEnd);
  EXPECT_THAT(failure({.targets = {"mask.png"}}),
              AllOf(Names("train-0.tar"), HasSubstr("30 x 41"), HasSubstr("30 x 40")));
  put("train-0.tar", tar_entry({"s1.jpg", jpeg_picture(30, 40)}) +
                         tar_entry({"s1.mask.png", png_of(picture(30, 40), 30, 40)}) + kTarEnd);
  EXPECT_THAT(failure({.targets = {"mask.png"}}),
              AllOf(Names("train-0.tar"), Names("s1.mask.png"), HasSubstr("colours")));
}

TEST_F(TarMaskTest, ShardsThatAreCompressedGiveTheSame) {
  const std::string shard = sample(0, "mask.png") + sample(1, "mask.png") + kTarEnd;
  put("train-0.tar", shard);
  const auto plain = open({.targets = {"mask.png"}});
  ASSERT_TRUE(plain.is_ok()) << plain.status().message();
  const std::string before((*plain)->fingerprint());
  fs::remove(dir_.path("data/train-0.tar"));
  put("train-0.tar.gz", gzip_bytes(shard));
  const auto packed = open({.targets = {"mask.png"}});
  ASSERT_TRUE(packed.is_ok()) << packed.status().message();
  EXPECT_EQ((*packed)->fingerprint(), before);
  EXPECT_EQ(values_of(**packed), (MaskRows{{50}, {51}}));
}

}  // namespace
}  // namespace lockstep::data
