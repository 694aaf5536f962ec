#include "data/open/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(InspectData, ShowsBothSplits) {
  const TemporaryDirectory dir;
  write_file(dir.path("train-images-idx3-ubyte"), some_images(20, 3, 4));
  write_file(dir.path("train-labels-idx1-ubyte"), some_labels(20, 3));
  write_file(dir.path("t10k-images-idx3-ubyte"), some_images(5, 3, 4, 2));
  write_file(dir.path("t10k-labels-idx1-ubyte"), some_labels(5, 3));
  const auto seen = inspect_data(spec_of(dir.path()), dir.path("cache"));
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  const nlohmann::json json = to_json(seen.value());
  EXPECT_EQ(json["splits"].size(), 2U);
  EXPECT_EQ(json["splits"][0]["split"], "train");
  EXPECT_EQ(json["splits"][0]["samples"], 20);
  EXPECT_EQ(json["splits"][0]["shape"], nlohmann::json({1, 3, 4}));
  EXPECT_EQ(json["splits"][0]["class_counts"], nlohmann::json({7, 7, 6}));
  EXPECT_EQ(json["splits"][1]["split"], "eval");
  const std::string text = to_text(seen.value());
  EXPECT_THAT(text, HasSubstr("1 x 3 x 4"));
  EXPECT_THAT(text, HasSubstr("train-images-idx3-ubyte"));
  EXPECT_THAT(text, HasSubstr(json["splits"][0]["fingerprint"].get<std::string>()));
}

TEST(InspectData, AClassWithoutASampleIsTold) {
  const TemporaryDirectory dir;
  write_file(dir.path("t.csv"), "a,label\n1,1\n2,2\n3,1\n");
  const auto shifted = inspect_data(spec_of(dir.path("t.csv")), dir.path("cache"));
  ASSERT_TRUE(shifted.is_ok()) << shifted.status().message();
  ASSERT_EQ(shifted->warnings.size(), 1U);
  EXPECT_THAT(shifted->warnings[0], testing::AllOf(HasSubstr("class 0"), HasSubstr("subtract 1")));
  write_file(dir.path("u.csv"), "a,label\n1,0\n2,3\n3,1\n");
  const auto holes = inspect_data(spec_of(dir.path("u.csv")), dir.path("cache"));
  ASSERT_TRUE(holes.is_ok()) << holes.status().message();
  ASSERT_EQ(holes->warnings.size(), 1U);
  EXPECT_THAT(holes->warnings[0], testing::AllOf(HasSubstr("class 2"), HasSubstr("add samples")));
  EXPECT_THAT(to_text(*holes), HasSubstr("warning: data: no sample has class 2"));
}

TEST(InspectData, ShowsClassesByNameAndSizesThatDiffer) {
  const TemporaryDirectory dir;
  for (const auto& [name, width] :
       {std::pair("d/apple/0.jpg", 20U), std::pair("d/apple/1.jpg", 30U),
        std::pair("d/pear/0.jpg", 25U)}) {
    std::filesystem::create_directories(std::filesystem::path(dir.path(name)).parent_path());
    write_file(dir.path(name), jpeg_picture(width, 40, 1));
  }
  const auto seen = inspect_data(spec_of(dir.path("d")), dir.path("cache"));
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  const std::string text = to_text(*seen);
  for (const char* line : {"0: 2  apple", "1: 1  pear", "20 to 30 wide, 40 to 40 high"})
    EXPECT_THAT(text, HasSubstr(line));
  const nlohmann::json split = to_json(*seen)["splits"][0];
  EXPECT_EQ(split["class_names"], nlohmann::json({"apple", "pear"}));
  EXPECT_EQ(split["sizes"]["width"], nlohmann::json({20, 30}));
  EXPECT_THAT(text, HasSubstr("normalize takes these"));
  EXPECT_FLOAT_EQ(split["normalize"]["mean"][2], split["statistics"][2]["mean"]);
  EXPECT_FLOAT_EQ(split["normalize"]["std"][2], split["statistics"][2]["std"]);
}

// Shows what a run would divide by, not what was measured.
TEST(InspectData, ShowsTheConstantsOfAColumnThatNeverChanges) {
  const TemporaryDirectory dir;
  write_file(dir.path("train.csv"), "a,b,label\n1,5,x\n3,5,y\n");
  const auto seen = inspect_data(spec_of(dir.path()), dir.path("cache"));
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  const nlohmann::json split = to_json(*seen)["splits"][0];
  EXPECT_EQ(split["statistics"][1]["std"], 0);
  EXPECT_EQ(split["normalize"], nlohmann::json::parse(R"({"mean": [2, 5], "std": [1, 1]})"));
  EXPECT_THAT(to_text(*seen), HasSubstr("normalize divides by 1"));
}

TEST(InspectData, ShowsTrainingDataAlone) {
  const TemporaryDirectory dir;
  write_file(dir.path("train-images-idx3-ubyte"), some_images(20, 3, 4));
  write_file(dir.path("train-labels-idx1-ubyte"), some_labels(20, 3));
  const auto seen = inspect_data(spec_of(dir.path()), dir.path("cache"));
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_EQ(seen.value().splits.size(), 1U);
}

TEST(InspectData, ReportsDamageOfEitherSplit) {
  const TemporaryDirectory dir;
  write_file(dir.path("train-images-idx3-ubyte"), some_images(20, 3, 4));
  write_file(dir.path("train-labels-idx1-ubyte"), some_labels(20, 3));
  write_file(dir.path("t10k-images-idx3-ubyte"), "garbage");
  write_file(dir.path("t10k-labels-idx1-ubyte"), some_labels(5, 3));
  EXPECT_EQ(inspect_data(spec_of(dir.path()), dir.path("cache")).status().code(), Code::kBadData);
}

// pandas writes 0,1 for an array of two columns, and a row of numbers can be the same.
TEST(InspectData, AFirstLineThatMayBeAHeaderIsTold) {
  const TemporaryDirectory dir;
  const auto text_of = [&](const std::string& table, const wire::DatasetSpec& spec,
                           const std::string& label = "") {
    write_file(dir.path("t.csv"), table);
    SampleCut cut;
    cut.columns.label = label;
    const auto seen = inspect_data(spec, dir.path("cache"), {}, cut);
    EXPECT_TRUE(seen.is_ok()) << seen.status().message();
    return seen.is_ok() ? to_text(*seen) + to_json(*seen).dump() : "";
  };
  const wire::DatasetSpec spec = spec_of(dir.path("t.csv"));
  constexpr char kRow[] = "line 1, 0 to 1, is taken for a row";
  const std::string two = "0,1\n5,0\n6,1\n7,1\n";
  EXPECT_THAT(text_of(two, spec),
              testing::AllOf(HasSubstr(kRow), HasSubstr("\"header\":\"line 1")));
  EXPECT_THAT(text_of(two, spec, "2"), HasSubstr(kRow)) << "nothing is guessed";
  EXPECT_THAT(text_of("\n0;1\n5;0\n6;1\n7;1\n", spec), HasSubstr("line 2, 0 to 1"));
  EXPECT_THAT(text_of("5,0\n0,1\n7,1\n", spec), Not(HasSubstr("is taken for")));
  EXPECT_THAT(text_of("0,1,2\n5,8,0\n6,8,1\n7,8,1\n", spec, "2"),
              HasSubstr("line 1, 0 to 2, is taken for a header"));
}

class InspectDamaged : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(dir_.path(name)).parent_path());
    write_file(dir_.path(name), content);
  }
  Status inspected() { return inspect_data(spec_of(dir_.path("d")), dir_.path("cache")).status(); }

  const std::string image_ = jpeg_picture(64, 64, 3);
  const std::string cut_ = image_.substr(0, image_.size() - 400);  // its header is whole
  TemporaryDirectory dir_;
};

TEST_F(InspectDamaged, EveryImageThatCannotBeDecodedIsNamed) {
  for (const char* name : {"0", "2", "4"}) put(std::string("d/a/") + name + ".jpg", cut_);
  for (const char* name : {"1", "3", "5"}) put(std::string("d/a/") + name + ".jpg", image_);
  EXPECT_THAT(inspected(),
              FailsWith(Code::kBadData, Names("a/0.jpg", "a/2.jpg", "a/4.jpg"), Says("JPEG")));
  EXPECT_THAT(inspected().message(), Not(HasSubstr("a/1.jpg")));
}

TEST_F(InspectDamaged, AmongManyImagesItSaysHowManyWereLookedAt) {
  put("d/a/0000.jpg", cut_);
  const std::string small = jpeg_picture(64, 64, 1);
  for (int i = 1; i < 1'100; ++i) put("d/a/" + std::to_string(9'000 + i) + ".jpg", small);
  EXPECT_THAT(inspected(), FailsWith(Code::kBadData, Names("a/0000.jpg"),
                                     Says("1024 of 1100", "lockstep data verify")));
}

TEST_F(InspectDamaged, ImagesWithoutAHeaderDoNotHideOthers) {
  put("d/a/0.jpg", cut_);
  put("d/a/1.jpg", "no image at all");
  put("d/a/2.jpg", image_);
  put("d/b/3.png", "nor is this one");
  put("d/b/4.jpg", cut_);
  EXPECT_THAT(inspected(),
              FailsWith(Code::kBadData, Names("a/0.jpg", "b/4.jpg", "a/1.jpg", "b/3.png")));
  put("d/a/2.jpg", jpeg_picture(300, 70, 3));  // no crop is known, and their sizes differ
  EXPECT_THAT(inspected(),
              FailsWith(Code::kBadData, Names("a/0.jpg", "b/4.jpg", "a/1.jpg", "b/3.png")));
}

TEST_F(InspectDamaged, ThoseOfEvaluationAreNamedWithThoseOfTraining) {
  put("d/train/a/0.jpg", cut_);
  put("d/train/a/1.jpg", image_);
  put("d/val/a/2.jpg", "no image at all");
  put("d/val/a/3.jpg", image_);
  put("d/val/a/4.jpg", cut_);
  EXPECT_THAT(inspected(),
              FailsWith(Code::kBadData, Names("train/a/0.jpg", "val/a/2.jpg", "val/a/4.jpg")));
}

TEST(InspectData, ShowsTokensWithTheirVocabularyAndBothSplits) {
  const TemporaryDirectory dir;
  write_file(dir.path("train.txt"), "to be or not to be");
  write_file(dir.path("val.txt"), "that is");
  const auto seen = inspect_data(spec_of(dir.path()), "", {}, {4, 0});
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  const nlohmann::json json = to_json(seen.value());
  EXPECT_EQ(json["splits"].size(), 2U);
  EXPECT_EQ(json["splits"][0]["format"], "text");
  EXPECT_EQ(json["splits"][0]["samples"], 4);
  EXPECT_EQ(json["splits"][0]["tokens"], 4);
  EXPECT_EQ(json["splits"][0]["classes"], 256);
  EXPECT_EQ(json["splits"][1]["samples"], 1);
  EXPECT_THAT(to_text(seen.value()), HasSubstr("4 tokens and the next one, uint8"));
}

}  // namespace
}  // namespace lockstep::data
