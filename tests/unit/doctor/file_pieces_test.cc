#include "data/doctor/file_pieces.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/open/open_dataset.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::doctor {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kCount = 100;
constexpr uint32_t kSide = 100;  // 10,000 bytes a sample: each has pages of its own

class FilePiecesTest : public ::testing::Test {
 protected:
  std::unique_ptr<data::Dataset> open(const data::SampleCut& cut = {}) {
    wire::DatasetSpec spec;
    spec.set_path(dir_.path("data"));
    spec.set_format("auto");
    auto opened = data::open_dataset(spec, data::Split::kTrain, dir_.path("cache"), {}, cut);
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    return std::move(opened).value();
  }
  void write_images(bool gzipped) {
    fs::create_directories(dir_.path("data"));
    const std::string images = data::some_images(kCount, kSide, kSide);
    const std::string labels = data::some_labels(kCount, 4);
    const std::string end = gzipped ? ".gz" : "";
    write_file(dir_.path("data/train-images-idx3-ubyte" + end),
               gzipped ? data::gzip_bytes(images) : images);
    write_file(dir_.path("data/train-labels-idx1-ubyte" + end),
               gzipped ? data::gzip_bytes(labels) : labels);
  }

  TemporaryDirectory dir_;
};

TEST_F(FilePiecesTest, StoredSamplesAreTheirBytesInTheFileThatIsMapped) {
  write_images(/*gzipped=*/false);
  const auto dataset = open();
  const std::vector<uint64_t> samples{90, 4, 90, 5};  // 4 and 5 lie side by side
  const FilePieces pieces(*dataset, samples);
  ASSERT_EQ(pieces.files().size(), 1U);
  const FilePieces::File& file = pieces.files()[0];
  EXPECT_EQ(file.path, fs::canonical(dir_.path("data/train-images-idx3-ubyte")));
  ASSERT_EQ(file.pieces.size(), 2U);
  constexpr uint64_t kHeader = 16;
  constexpr uint64_t kBytes = kSide * kSide;
  EXPECT_LE(file.pieces[0].begin, kHeader + 4 * kBytes);
  EXPECT_GE(file.pieces[0].end, kHeader + 6 * kBytes);
  EXPECT_LE(file.pieces[1].begin, kHeader + 90 * kBytes);
  EXPECT_GE(file.pieces[1].end, kHeader + 91 * kBytes);
  EXPECT_LT(file.pieces[1].end, kHeader + 93 * kBytes);
}

TEST_F(FilePiecesTest, SamplesThatAreReadFromAnInflatedCopyLieInTheCopy) {
  write_images(/*gzipped=*/true);
  const auto dataset = open();
  const FilePieces pieces(*dataset, std::vector<uint64_t>{0, 1});
  ASSERT_EQ(pieces.files().size(), 1U);
  EXPECT_EQ(fs::path(pieces.files()[0].path).parent_path(), fs::canonical(dir_.path("cache")));
}

TEST_F(FilePiecesTest, OfSequencesThatAreMadeTheFileOfTheFirstDocumentIsThere) {
  fs::create_directories(dir_.path("data"));
  write_file(dir_.path("data/1.txt"), std::string(9'000, 'a'));
  write_file(dir_.path("data/2.txt"), std::string(9'000, 'b'));
  data::SampleCut cut{.block = 9'000};
  cut.documents = data::Documents::kPad;
  const auto dataset = open(cut);
  const FilePieces pieces(*dataset, std::vector<uint64_t>{1, 1});
  ASSERT_EQ(pieces.files().size(), 1U);
  EXPECT_EQ(pieces.files()[0].path, fs::canonical(dir_.path("data/2.txt")));
  ASSERT_EQ(pieces.files()[0].pieces.size(), 1U);
  EXPECT_GE(pieces.files()[0].pieces[0].end, 9'000U);
}

TEST_F(FilePiecesTest, OfEncodedSamplesEveryFileIsThereOnceAndWhole) {
  for (const char* name : {"data/apple/1.jpg", "data/apple/2.jpg", "data/plum/1.jpg"}) {
    fs::create_directories(fs::path(dir_.path(name)).parent_path());
    write_file(dir_.path(name), data::jpeg_picture(32, 32));
  }
  const auto dataset = open();
  const FilePieces pieces(*dataset, std::vector<uint64_t>{2, 0, 2});
  ASSERT_EQ(pieces.files().size(), 2U);
  for (const FilePieces::File& file : pieces.files()) {
    ASSERT_EQ(file.pieces.size(), 1U);
    EXPECT_EQ(file.pieces[0].begin, 0U);
    EXPECT_GE(file.pieces[0].end, fs::file_size(file.path));
  }
}

TEST_F(FilePiecesTest, WhatIsPutOutOfMemoryIsReadAsBefore) {
  write_images(/*gzipped=*/false);
  const auto dataset = open();
  const std::vector<uint64_t> samples{0, kCount - 1};
  const FilePieces pieces(*dataset, samples);
  const std::string file = slurp(dir_.path("data/train-images-idx3-ubyte"));
  pieces.put_out_of_memory();
  const double share = pieces.share_out_of_memory();
  EXPECT_GE(share, 0);  // how much is the system's choice
  EXPECT_LE(share, 1);
  for (const uint64_t i : samples)
    EXPECT_EQ(std::memcmp(stored_sample(*dataset, i), file.data() + 16 + i * kSide * kSide,
                          kSide * kSide),
              0);
}

TEST(ParseMappedRange, TellsFilesFromMemory) {
  const auto file = parse_mapped_range(
      "7f00a000-7f00c000 r--s 00002000 fe:01 1234                       /data/my images.idx");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->begin, 0x7f00a000U);
  EXPECT_EQ(file->end, 0x7f00c000U);
  EXPECT_EQ(file->offset, 0x2000U);
  EXPECT_EQ(file->path, "/data/my images.idx");
  for (const char* line : {"", "7f00a000-7f00c000 rw-p 00000000 00:00 0 ", "no numbers at all",
                           "7f00a000-7f00c000 rw-p 00000000 00:00 0          [heap]",
                           "7f00c000-7f00a000 r--s 00000000 fe:01 1   /backwards"})
    EXPECT_FALSE(parse_mapped_range(line).has_value()) << line;
}

}  // namespace
}  // namespace lockstep::doctor
