#include "data/loader/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/npz_samples.h"
#include "tests/unit/data/samples/tfrecord_samples.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Verify : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(dir_.path("data/" + name)).parent_path());
    write_file(dir_.path("data/" + name), content);
  }

  Result<std::vector<Verification>> verify(uint32_t threads = 2,
                                           VerifyDepth depth = VerifyDepth::kSamples) {
    return verify_data(spec_of(dir_.path("data")), dir_.path("cache"), threads, {}, {.block = 4},
                       depth);
  }
  Verification fully() {
    const auto all = verify(2, VerifyDepth::kFull);
    EXPECT_TRUE(all.is_ok()) << all.status().message();
    return all.is_ok() ? all->front() : Verification();
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
    EXPECT_THAT((*bad)[0].faults, ElementsAre(AllOf(Names("a/103.jpg"), Says("JPEG")),
                                              AllOf(Names("a/111.png"), Says("PNG"))));
    EXPECT_EQ((*bad)[1].damaged, 0U);
  }
}

// One whose header is damaged cannot be indexed; the others are looked at all the same.
TEST_F(Verify, GoesOnAfterFilesThatCannotBeIndexed) {
  const std::string image = jpeg_picture(64, 64, 3);
  put("a/0.jpg", image.substr(0, image.size() - 40));
  put("a/1.jpg", "no image at all");
  put("a/2.jpg", image);
  put("a/3.png", "nor is this one");
  const auto bad = verify();
  ASSERT_TRUE(bad.is_ok()) << bad.status().message();
  EXPECT_EQ((*bad)[0].samples, 4U);
  EXPECT_EQ((*bad)[0].damaged, 3U);
  EXPECT_THAT((*bad)[0].faults, ElementsAre(AllOf(Names("a/0.jpg"), Says("JPEG")), Names("a/1.jpg"),
                                            Names("a/3.png")));
  // Opening the data names all of them, too.
  const auto opened = open_dataset(spec_of(dir_.path("data")), Split::kTrain, dir_.path("cache"));
  EXPECT_THAT(opened.status().message(), AllOf(HasSubstr("a/1.jpg"), HasSubstr("a/3.png")));
}

TEST_F(Verify, GoesOnAfterADamagedShard) {
  const std::string shard = tfrecord_sample("datasets");
  put("a.tfrecord", shard);
  put("b.tfrecord", shard.substr(0, shard.size() - 10));
  put("c.tfrecord", shard.substr(0, shard.size() - 20));
  const auto bad = verify();
  ASSERT_TRUE(bad.is_ok()) << bad.status().message();
  EXPECT_EQ((*bad)[0].damaged, 2U);
  EXPECT_THAT((*bad)[0].faults, ElementsAre(Names("b.tfrecord"), Names("c.tfrecord")));
  EXPECT_GT((*bad)[0].bytes, 0U);
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

TEST_F(Verify, InFullTheChecksumOfEveryRecordIsCompared) {
  const std::string shard = tfrecord_sample("datasets");
  put("a.tfrecord", shard);
  put("b.tfrecord", shard);
  const Verification good = fully();
  EXPECT_EQ(good.samples, 8U);
  EXPECT_EQ(good.damaged, 0U);
  EXPECT_GT(good.bytes, 2 * (shard.size() - 4 * 16)) << "every record, and every image";

  // Names of files, which no image and no label needs.
  std::string damaged = shard;
  const size_t name = shard.find("green");
  ASSERT_NE(name, std::string::npos);
  damaged[name] = 'G';
  put("b.tfrecord", damaged);
  EXPECT_EQ(verify()->front().damaged, 0U);
  const Verification bad = fully();
  EXPECT_EQ(bad.damaged, 1U);
  EXPECT_THAT(bad.faults, ElementsAre(AllOf(Names("b.tfrecord", "byte 384"), Says("checksum"))));

  // A damaged sample that cannot be decoded either counts once, too.
  const size_t png = shard.find("IDAT", name - 200);
  ASSERT_LT(png, name);
  damaged[png + 6] = static_cast<char>(damaged[png + 6] ^ 0x40);
  put("b.tfrecord", damaged);
  EXPECT_EQ(verify()->front().damaged, 1U);
  EXPECT_EQ(fully().damaged, 1U);
}

TEST_F(Verify, InFullTheChecksumsOfAnArchiveAreCompared) {
  for (const char* sample : {"mnist", "mnist_compressed"}) {
    const std::string archive = npz_sample(sample);
    put("x.npz", archive);
    EXPECT_TRUE(fully().damaged_files.empty());
    std::string damaged = archive;
    damaged[200] = static_cast<char>(damaged[200] ^ 1);
    put("x.npz", damaged);
    EXPECT_THAT(fully().damaged_files, ElementsAre(HasSubstr("x.npz (x_train) is")));
    EXPECT_EQ(fully().damaged, 0U);
  }
  std::string damaged = npz_sample("mnist");
  damaged[200] = static_cast<char>(damaged[200] ^ 1);
  put("x.npz", damaged);
  EXPECT_EQ(verify()->front().damaged, 0U) << "a pixel like any other";
}

// Also where training reads a copy in the cache, which was right.
TEST_F(Verify, InFullTheChecksumsOfGzippedFilesAreCompared) {
  const std::string images = gzip_bytes(some_images(30, 4, 4), /*level=*/0);
  put("train-images-idx3-ubyte.gz", images);
  put("train-labels-idx1-ubyte", some_labels(30));
  EXPECT_EQ(fully().samples, 30U);
  std::string damaged = images;
  damaged[100] = static_cast<char>(damaged[100] ^ 1);
  put("train-images-idx3-ubyte.gz", damaged);
  EXPECT_THAT(fully().damaged_files,
              ElementsAre(AllOf(Names("train-images-idx3-ubyte.gz"), Says("corrupt"))));
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
