#include "data/open/index_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/samples/npy_samples.h"
#include "tests/unit/data/samples/npz_samples.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::SizeIs;
using testing::StartsWith;

class IndexData : public testing::Test {
 protected:
  IndexedData index(const std::string& path, const std::string& format = "auto") {
    const auto indexed = index_data(spec_of(path, format), dir_.path("cache"), {}, {.block = 4});
    EXPECT_TRUE(indexed.is_ok()) << indexed.status().message();
    return indexed.is_ok() ? *indexed : IndexedData();
  }
  static std::vector<std::string> names(const std::vector<IndexedData::File>& files) {
    std::vector<std::string> names;
    for (const IndexedData::File& file : files) names.push_back(file.name);
    return names;
  }
  TemporaryDirectory dir_;
};

TEST_F(IndexData, MakesOnceWhatBothSplitsNeed) {
  write_file(dir_.path("x.npz"), npz_sample("mnist_compressed"));
  const IndexedData first = index(dir_.path("x.npz"));
  ASSERT_THAT(first.splits, SizeIs(2));
  EXPECT_EQ(first.splits[0].split, "train");
  EXPECT_EQ(first.splits[0].samples, 4U);
  EXPECT_EQ(first.splits[1].split, "eval");
  EXPECT_THAT(first.made, SizeIs(6)) << "two arrays and statistics of each split";
  EXPECT_THAT(first.kept, IsEmpty());
  const IndexedData again = index(dir_.path("x.npz"));
  EXPECT_EQ(again.splits[0].fingerprint, first.splits[0].fingerprint);
  EXPECT_THAT(again.made, IsEmpty());
  EXPECT_EQ(names(again.kept), names(first.made));
}

TEST_F(IndexData, OfWhatWasMadeOnlyTheDamagedPartIsMadeAgain) {
  write_file(dir_.path("x.npz"), npz_sample("mnist_compressed"));
  const IndexedData first = index(dir_.path("x.npz"));
  const std::string name = first.made.back().name;
  ASSERT_THAT(name, HasSubstr(".inflated"));
  const std::string whole = slurp(dir_.path("cache/" + name));
  write_file(dir_.path("cache/" + name), whole.substr(0, whole.size() - 1));
  write_file(dir_.path("cache/" + name + ".tmp.abcdef"), "of somebody else");
  EXPECT_THAT(names(index(dir_.path("x.npz")).made), ElementsAre(name));
  EXPECT_EQ(slurp(dir_.path("cache/" + name)), whole);
}

TEST_F(IndexData, ImagesOfManySizesGetTheirIndex) {
  fs::create_directories(dir_.path("data/a"));
  for (uint32_t i = 0; i < 3; ++i)
    write_file(dir_.path("data/a/" + std::to_string(i) + ".jpg"), jpeg_picture(30 + i, 40, i));
  const IndexedData indexed = index(dir_.path("data"));
  ASSERT_THAT(indexed.splits, SizeIs(1));
  EXPECT_EQ(indexed.splits[0].split, "data");
  EXPECT_THAT(names(indexed.made),
              ElementsAre(EndsWith(".index"), EndsWith(".index.marks"), StartsWith("statistics-")));
  EXPECT_THAT(index(dir_.path("data")).made, IsEmpty());
}

TEST_F(IndexData, CompressedArrowFilesOfImagesAreInflatedEachSplitByItself) {
  fs::create_directory(dir_.path("data"));
  for (const char* name : {"data/train.arrow", "data/val.arrow"})
    write_file(dir_.path(name), arrow_sample("encoded_lz4"));
  const IndexedData first = index(dir_.path("data"));
  EXPECT_THAT(first.splits, SizeIs(2));
  EXPECT_THAT(names(first.made),
              IsSupersetOf({HasSubstr("/train.arrow"), HasSubstr("/val.arrow")}));
  // The files that one split adds must not make the other split's index look old.
  std::set<std::string> places;
  for (const std::string& name : names(first.made))
    if (name.ends_with(".arrow")) places.insert(name.substr(0, name.find('/')));
  EXPECT_THAT(places, SizeIs(2));
  const IndexedData again = index(dir_.path("data"));
  EXPECT_THAT(again.made, IsEmpty());
  EXPECT_EQ(names(again.kept), names(first.made));
}

TEST_F(IndexData, TheFormatMayBeNamed) {
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/images.npy"), npy_sample("images_nhwc"));
  write_file(dir_.path("data/labels.npy"), npy_sample("labels_int64"));
  EXPECT_THAT(index(dir_.path("data"), "npy_nhwc").splits, SizeIs(1));
  EXPECT_THAT(index(dir_.path("data")).splits, SizeIs(1));
}

TEST_F(IndexData, DamageOfEitherSplitIsTold) {
  write_file(dir_.path("train-images-idx3-ubyte"), some_images(20, 3, 4));
  write_file(dir_.path("train-labels-idx1-ubyte"), some_labels(20, 3));
  write_file(dir_.path("t10k-images-idx3-ubyte"), "garbage");
  write_file(dir_.path("t10k-labels-idx1-ubyte"), some_labels(5, 3));
  const auto indexed = index_data(spec_of(dir_.path()), dir_.path("cache"), {}, {});
  EXPECT_EQ(indexed.status().code(), Code::kBadData);
  EXPECT_THAT(indexed.status().message(), HasSubstr("t10k-images-idx3-ubyte"));
}

}  // namespace
}  // namespace lockstep::data
