// Files that change while they are mapped: nothing dies, nothing is handed on, and the file is
// named.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <span>

#include "data/dataset/dataset.h"
#include "data/files/mapped_file.h"
#include "data/loader/loader.h"
#include "data/loader/sample_reader.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kCount = 64;
constexpr uint32_t kImageSide = 64;  // a page an image

using testing::HasSubstr;

void set_modified(const std::string& path, int64_t seconds) {
  const timespec times[2] = {{0, UTIME_OMIT}, {seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

class ChangedFiles : public testing::Test {
 protected:
  void SetUp() override {
    write_file(images_, some_images(kCount, kImageSide, kImageSide));
    write_file(labels_, some_labels(kCount));
  }

  Result<std::unique_ptr<Dataset>> open(const ProgressFn& progress = {}) {
    return open_dataset(spec_of(dir_.path()), Split::kTrain, dir_.path("cache"), progress);
  }

  // Returns what reading sample `i` says after `change` was made to the open files.
  Status after(const std::function<void()>& change, uint64_t i = kCount - 1) {
    const auto dataset = open();
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    const std::vector<uint64_t> samples{i};
    EXPECT_TRUE((*dataset)->unchanged(samples).is_ok());
    change();
    const auto reader = SampleReader::create(**dataset, {"normalize"}, (*dataset)->statistics());
    std::vector<std::byte> input(reader->input_bytes());
    int64_t label = 0;
    return reader->read_range(i, i + 1, input.data(), &label);
  }

  TemporaryDirectory dir_;
  const std::string images_ = dir_.path("train-images-idx3-ubyte");
  const std::string labels_ = dir_.path("train-labels-idx1-ubyte");
};

TEST_F(ChangedFiles, OneThatIsCutOffIsNamed) {
  const Status status = after([&] { fs::resize_file(images_, 10'000); });
  EXPECT_THAT(status,
              FailsWith(Code::kBadData, Names(images_), Says("changed", "262160 bytes", "10000")));
}

TEST_F(ChangedFiles, AShrinkWithinTheLastPageIsSeenThoughNothingFaults) {
  const Status status = after([&] { fs::resize_file(images_, fs::file_size(images_) - 1); });
  EXPECT_THAT(status.message(), HasSubstr(images_));
}

TEST_F(ChangedFiles, LabelsThatAreCutOffAreNamed) {
  const Status status = after([&] { fs::resize_file(labels_, 0); });
  EXPECT_THAT(status, FailsWith(Code::kBadData, Names(labels_), Says("changed")));
}

TEST_F(ChangedFiles, OneThatWasWrittenToIsNamed) {
  const Status status = after([&] { set_modified(images_, 1'000'000'000); });
  EXPECT_THAT(status, FailsWith(Code::kBadData, Says("written to")));
}

TEST_F(ChangedFiles, OneThatWasWrittenToAndGotItsTimeAgainIsNamed) {
  for (const std::string& path : {images_, labels_}) {
    const Status status = after([&] { write_and_put_time_back(path, 20, 1); });
    EXPECT_THAT(status, FailsWith(Code::kBadData, Names(path), Says("was written to", "old ones")));
  }
}

// No hash of a large file is kept, so its marks tell.
TEST_F(ChangedFiles, OfWhatCannotBeComparedNamesRightsAndLinksMayChange) {
  const std::string backup = labels_ + ".backup";
  auto file = MappedFile::open(labels_);
  ASSERT_TRUE(file.is_ok());
  const std::vector<std::function<void()>> touches = {
      [&] { ASSERT_EQ(::chmod(labels_.c_str(), 0600), 0); },
      [&] { fs::create_hard_link(labels_, backup); }, [&] { fs::remove(backup); },
      [&] { ASSERT_EQ(::chmod(labels_.c_str(), 0644), 0); }, [&] { fs::rename(labels_, backup); }};
  for (const auto& touch : touches) {
    touch();
    EXPECT_TRUE(file->unchanged().is_ok());
  }
  fs::rename(backup, labels_);
  file = MappedFile::open(labels_);
  write_and_put_time_back(labels_, 20, 1);
  EXPECT_THAT(file->unchanged(), FailsWith(Code::kBadData, Names(labels_), Says("written to")));
}

TEST_F(ChangedFiles, ALabelThatIsNoneAnyMoreIsNamedWithItsOwnFile) {
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok());
  EXPECT_THAT((*dataset)->label_name_of(kCount - 1), AllOf(HasSubstr(labels_), HasSubstr("63")));
  EXPECT_THAT((*dataset)->name_of(kCount - 1), HasSubstr(images_));
}

TEST_F(ChangedFiles, ReplacingOrRemovingThemIsHarmless) {
  EXPECT_TRUE(after([&] {
                fs::rename(images_, images_ + ".old");
                write_file(images_, "something else");
                fs::remove(images_ + ".old");
                fs::remove(labels_);
              }).is_ok());
}

TEST_F(ChangedFiles, ACutDuringOpeningIsNamedAndNothingOfItIsKept) {
  const auto dataset = open([&](const std::string&, uint64_t done, uint64_t) {
    if (done == 0) fs::resize_file(images_, 10'000);
  });
  ASSERT_FALSE(dataset.is_ok());
  EXPECT_THAT(dataset, FailsWith(Code::kBadData, Names(images_), Says("changed")));
  EXPECT_FALSE(fs::exists(dir_.path("cache")));
}

TEST_F(ChangedFiles, OfManyFilesOnlyThoseThatHoldTheSamplesCount) {
  fs::create_directory(dir_.path("tokens"));
  const std::string first = dir_.path("tokens/a.bin");
  const std::string second = dir_.path("tokens/b.bin");
  write_file(first, std::string(200, '\1'));
  write_file(second, std::string(200, '\1'));
  const auto dataset =
      open_dataset(spec_of(dir_.path("tokens"), "tokens"), Split::kTrain, "", {}, SampleCut{9, 0});
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  ASSERT_EQ((*dataset)->samples(), 22U);
  fs::resize_file(second, 150);
  const std::vector<uint64_t> of_first{0, 10, 3};
  const std::vector<uint64_t> of_both{0, 10, 11};
  EXPECT_TRUE((*dataset)->unchanged(of_first).is_ok());
  EXPECT_THAT((*dataset)->unchanged(of_both).message(), HasSubstr(second));
}

TEST_F(ChangedFiles, TheLoaderHandsOnNoBatchOfThem) {
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok());
  LoaderOptions options;
  options.shape = {kCount, 8, 1};
  options.order = {0, (*dataset)->fingerprint(), kCount};
  options.end_step = 1'000;
  options.slots = {0, 1};
  options.prefetch_batches = 2;
  const auto loader = Loader::start(**dataset, options);
  ASSERT_TRUE(loader.is_ok());
  ASSERT_NE(loader.value()->next().value(), nullptr);
  fs::resize_file(images_, 0);
  Status failure;
  int batches = 0;
  for (; failure.is_ok() && batches < 1'000; ++batches) {
    const auto next = loader.value()->next();
    failure = next.status();
    EXPECT_FALSE(failure.is_ok() && next.value() == nullptr);
  }
  EXPECT_THAT(failure.message(), AllOf(Names(images_), Says("changed")));
  EXPECT_LE(batches, 4) << "only what was ready before";
}

TEST_F(ChangedFiles, ThousandsOfThemMayBeOpen) {
  std::vector<MappedFile> files;
  for (int i = 0; i < 1'500; ++i) {
    auto file = MappedFile::open(labels_);
    ASSERT_TRUE(file.is_ok()) << file.status().message();
    files.push_back(std::move(file).value());
  }
}

}  // namespace
}  // namespace lockstep::data
