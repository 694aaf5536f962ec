#include "data/dataset/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset/memory_dataset.h"
#include "data/open/detect_format.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kImages[] = "train-images-idx3-ubyte";
constexpr char kLabels[] = "train-labels-idx1-ubyte";

class OpenDataset : public testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> open(const std::string& format = "auto") {
    return open_dataset(spec_of(dir_.path(), format), Split::kTrain, dir_.path("cache"));
  }
  void put(const std::string& name, const std::string& content) {
    write_file(dir_.path(name), content);
  }
  void expect_error(Code code, const std::string& file, const std::string& what) {
    const auto dataset = open();
    ASSERT_FALSE(dataset.is_ok());
    const std::string message = dataset.status().message();
    EXPECT_EQ(dataset.status().code(), code) << message;
    EXPECT_THAT(message, AllOf(HasSubstr(file), HasSubstr(what), Not(HasSubstr("\n"))));
  }

  TemporaryDirectory dir_;
};

TEST_F(OpenDataset, ReadsSamplesAndLabels) {
  put(kImages, some_images(25, 3, 4));
  put(kLabels, some_labels(25, 7));
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  const Dataset& data = *dataset.value();
  EXPECT_EQ(data.samples(), 25U);
  EXPECT_EQ(data.shape(), (SampleShape{1, 3, 4}));
  EXPECT_EQ(data.classes(), 7U);
  EXPECT_EQ(data.format(), "idx");
  EXPECT_EQ(label_of(data, 24), 3U);
  const std::string bytes = some_images(25, 3, 4);
  for (uint64_t i = 0; i < 25; ++i)
    EXPECT_EQ(std::string(stored_sample(data, i), stored_sample(data, i) + 12),
              bytes.substr(16 + 12 * i, 12));
}

TEST_F(OpenDataset, GivesTheSameRecordsAndFingerprintGzippedOrPlainWhateverTheName) {
  put(kImages, some_images(25, 3, 4));
  put(kLabels, some_labels(25));
  const auto plain = open();
  std::filesystem::remove(dir_.path(kImages));
  std::filesystem::remove(dir_.path(kLabels));
  put("train-images.idx3-ubyte.gz", gzip_bytes(some_images(25, 3, 4), 1));
  put("train-labels.idx1-ubyte.gz", gzip_bytes(some_labels(25), 9));
  const auto gzipped = open();
  ASSERT_TRUE(plain.is_ok() && gzipped.is_ok());
  EXPECT_EQ(plain.value()->fingerprint(), gzipped.value()->fingerprint());
  EXPECT_EQ(plain.value()->statistics(), gzipped.value()->statistics());
  for (uint64_t i = 0; i < 25; ++i) {
    const uint8_t* a = stored_sample(*plain.value(), i);
    EXPECT_TRUE(std::equal(a, a + 12, stored_sample(*gzipped.value(), i)));
    EXPECT_EQ(label_of(*plain.value(), i), label_of(*gzipped.value(), i));
  }
}

TEST_F(OpenDataset, ReadsColourImagesAndWideLabels) {
  put(kImages, idx_bytes(0x08, {2, 3, 1, 2}, "abcdefABCDEF"));
  put(kLabels, idx_bytes(0x0b, {2}, std::string("\x01\x00\x00\x07", 4)));
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ(dataset.value()->shape(), (SampleShape{3, 1, 2}));
  EXPECT_EQ(dataset.value()->classes(), 257U);
  EXPECT_EQ(stored_sample(*dataset.value(), 1)[5], 'F');
  EXPECT_EQ(dataset.value()->statistics().size(), 3U);
}

TEST_F(OpenDataset, RefusesTruncatedAndOverlongFiles) {
  put(kLabels, some_labels(25));
  put(kImages, some_images(25, 3, 4).substr(0, 315));
  expect_error(Code::kBadData, kImages, "is truncated: it has 315 bytes, its header promises 316");
  put(kImages, some_images(25, 3, 4) + "x");
  expect_error(Code::kBadData, kImages, "has 317 bytes, its header promises 316");
  put(kImages, "");
  expect_error(Code::kBadData, kImages, "is truncated");
}

TEST_F(OpenDataset, RefusesAGzippedFileThatIsTruncatedOrCorrupt) {
  put(kLabels, some_labels(25));
  const std::string good = gzip_bytes(some_images(25, 3, 4), 0);
  const std::string name = std::string(kImages) + ".gz";
  put(name, good.substr(0, good.size() - 20));
  expect_error(Code::kBadData, name, "is truncated");
  std::string damaged = good;
  damaged[100] ^= 1;  // inflates, but not to what was compressed
  put(name, damaged);
  expect_error(Code::kBadData, name, "is corrupt: incorrect data check");
}

TEST_F(OpenDataset, RefusesAWrongMagicNumber) {
  put(kImages, some_images(25, 3, 4));
  put(kLabels, "\x89PNG and so on");
  expect_error(Code::kBadData, kLabels, "magic number is 0x89504e47");
  put(kLabels, some_images(25, 3, 4));
  expect_error(Code::kBadData, kLabels, "holds no labels");
  put(kLabels, some_labels(25));
  put(kImages, some_labels(25));
  expect_error(Code::kBadData, kImages, "holds no images");
}

TEST_F(OpenDataset, RefusesLabelsThatDoNotFit) {
  put(kImages, some_images(25, 3, 4));
  put(kLabels, some_labels(24));
  expect_error(Code::kBadData, kLabels, "holds 24 labels; they do not belong together");
  put(kImages, some_images(2, 3, 4));
  put(kLabels, idx_bytes(0x0c, {2}, std::string("\x00\x00\x00\x01\x00\x01\x00\x00", 8)));
  expect_error(Code::kBadData, kLabels, "has label 65536 at sample 1");
  put(kLabels, idx_bytes(0x0b, {2}, std::string("\xff\xfe\x00\x01", 4)));
  expect_error(Code::kBadData, kLabels, "has label -2 at sample 0");
}

TEST_F(OpenDataset, RefusesToTrainOnNothing) {
  put(kImages, idx_bytes(0x08, {0, 28, 28}, ""));
  put(kLabels, idx_bytes(0x08, {0}, ""));
  expect_error(Code::kBadData, kImages, "holds no sample");
}

TEST_F(OpenDataset, NamesTheKnownFormats) {
  const auto dataset = open("parquet");
  EXPECT_THAT(dataset,
              FailsWith(Code::kUsage, Names("\"parquet\""), Advises("auto", "idx", "cifar10")));
}

TEST_F(OpenDataset, SaysHowParquetBecomesSomethingThatIsReadInPlace) {
  const auto expect_hint = [&](const std::string& path) {
    const auto format = detect_format(path);
    EXPECT_THAT(format, FailsWith(Code::kUsage, Advises("lockstep data pack " + path + " ")));
  };
  put("train.bytes", "PAR1 and so on");  // whatever its name
  expect_hint(dir_.path("train.bytes"));
  EXPECT_THAT(detect_format(dir_.path()).status().message(), Not(HasSubstr("Parquet")));
  put("train-00000-of-00001.parquet", "");
  expect_hint(dir_.path());
}

TEST_F(OpenDataset, SaysOfADirectoryWithoutDataWhatItFound) {
  const auto expect_words = [&](const std::string& words) {
    const Status found = detect_format(dir_.path()).status();
    EXPECT_THAT(found, FailsWith(Code::kNoInput, HasSubstr(words)));
  };
  expect_words("has no data files");
  put("notes.doc", "words");
  expect_words("no file in a format that Lockstep knows; the first of 1 is notes.doc");
  put("shard-000.tar.zst", "\x28\xb5\x2f\xfd and so on");
  expect_words("has shard-000.tar.zst, a compressed file");
  // A part is missing: opening the data says which.
  put("pictures", some_images(4, 3, 4));
  EXPECT_EQ(detect_format(dir_.path()).value(), "idx");
}

TEST_F(OpenDataset, LeavesNoCacheFileOfPlainDataButTheStatistics) {
  put(kImages, some_images(25, 3, 4));
  put(kLabels, some_labels(25));
  ASSERT_TRUE(open("idx").is_ok());
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path("cache")))
    EXPECT_THAT(entry.path().filename().string(), HasSubstr("statistics-"));
}

TEST(MemoryDataset, IsCheckedLikeAnyOther) {
  EXPECT_TRUE(make_memory_dataset({1, 2, 2}, std::vector<uint8_t>(8), {0, 3}).is_ok());
  EXPECT_EQ(make_memory_dataset({1, 2, 2}, std::vector<uint8_t>(7), {0, 3}).status().code(),
            Code::kBadData);
  EXPECT_EQ(make_memory_dataset({1, 2, 2}, {}, {}).status().code(), Code::kBadData);
  EXPECT_EQ(make_memory_dataset({1, 1, 1}, {7}, {70'000}).status().code(), Code::kBadData);
}

}  // namespace
}  // namespace lockstep::data
