#include "data/read/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/data/idx_writer.h"
#include "tests/unit/data/image_writer.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;

class Verify : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(dir_.path("data/" + name)).parent_path());
    write_file(dir_.path("data/" + name), content);
  }

  Result<std::vector<Verification>> verify(uint32_t threads = 2) {
    return verify_data(spec_of(dir_.path("data")), dir_.path("cache"), threads, {}, {.block = 4});
  }

  TemporaryDirectory dir_;
};

TEST_F(Verify, DecodesEveryImageToItsEnd) {
  for (uint32_t i = 0; i < 20; ++i)
    put("train/a/" + std::to_string(100 + i) + ".jpg", jpeg_picture(64, 64, i));
  for (uint32_t i = 0; i < 5; ++i)
    put("val/a/" + std::to_string(i) + ".jpg", jpeg_picture(40, 40, i));
  const auto good = verify();
  ASSERT_TRUE(good.is_ok()) << good.status().message();
  ASSERT_EQ(good->size(), 2U);
  EXPECT_EQ((*good)[0].split, "train");
  EXPECT_EQ((*good)[0].samples, 20U);
  EXPECT_EQ((*good)[0].damaged, 0U);
  EXPECT_EQ((*good)[1].samples, 5U);

  // The last rows of one, the middle of another.
  const std::string image = jpeg_picture(64, 64, 3);
  put("train/a/103.jpg", image.substr(0, image.size() - 40));
  std::string png = png_of(picture(30, 30), 30, 30);
  png[png.size() / 2] = static_cast<char>(png[png.size() / 2] ^ 16);
  put("train/a/111.png", png);
  for (const uint32_t threads : {1U, 3U}) {
    const auto bad = verify(threads);
    ASSERT_TRUE(bad.is_ok()) << bad.status().message();
    EXPECT_EQ((*bad)[0].damaged, 2U);
    EXPECT_THAT((*bad)[0].faults, ElementsAre(HasSubstr("a/103.jpg is a JPEG image that cannot"),
                                              HasSubstr("a/111.png is a PNG image that cannot")));
    EXPECT_EQ((*bad)[1].damaged, 0U);
  }
}

TEST_F(Verify, OfManyThatAreDamagedTheFirstAreNamed) {
  const std::string image = jpeg_picture(24, 24);
  for (uint32_t i = 0; i < 120; ++i)
    put("a/" + std::to_string(1'000 + i) + ".jpg", image.substr(0, image.size() - 100));
  const auto bad = verify();
  ASSERT_TRUE(bad.is_ok()) << bad.status().message();
  ASSERT_EQ(bad->size(), 1U);
  EXPECT_EQ((*bad)[0].split, "data");
  EXPECT_EQ((*bad)[0].damaged, 120U);
  ASSERT_EQ((*bad)[0].faults.size(), kMostFaults);
  EXPECT_THAT((*bad)[0].faults.back(), HasSubstr("a/1099.jpg"));
}

TEST_F(Verify, ReadsWhatIsStoredToo) {
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/train-images-idx3-ubyte"), some_images(30, 4, 4));
  write_file(dir_.path("data/train-labels-idx1-ubyte"), some_labels(30));
  const auto good = verify();
  ASSERT_TRUE(good.is_ok()) << good.status().message();
  ASSERT_EQ(good->size(), 1U);  // training data only
  EXPECT_EQ((*good)[0].format, "idx");
  EXPECT_EQ((*good)[0].samples, 30U);
  write_file(dir_.path("data/train-labels-idx1-ubyte"), some_labels(29));
  EXPECT_EQ(verify().status().code(), Code::kBadData);
}

}  // namespace
}  // namespace lockstep::data
