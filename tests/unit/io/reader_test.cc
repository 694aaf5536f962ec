// Tests what every reader does, each in turn.
#include "data/io/reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/base/limits.h"
#include "data/io/page_cache.h"
#include "data/io/page_cache_reader.h"
#include "data/io/pread_reader.h"
#include "tests/support/fails_with.h"
#include "tests/unit/io/files.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class EveryReader : public FilesToRead, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    content_ = some_bytes(3'000'000);
    write("data", content_);
    if (GetParam() == "pread") reader_ = std::move(make_pread_reader(3)).value();
    if (GetParam() == "page_cache") reader_ = make_page_cache_reader();
  }

  // The pages of the file are given back, so that reading it waits for the disk.
  void evict(const std::string& name) const {
    const Descriptor fd(::open(path(name).c_str(), O_RDONLY));
    ASSERT_EQ(::fsync(fd.get()), 0);
    ASSERT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }

  std::string read(const FileExtent& extent) {
    std::string out(extent.bytes, '\0');
    const Read one{extent, reinterpret_cast<uint8_t*>(out.data()), 0};
    const Status status = read_all(*reader_, std::span(&one, 1));
    return status.is_ok() ? out : status.message();
  }

  std::string content_;
  std::unique_ptr<Reader> reader_;
};

INSTANTIATE_TEST_SUITE_P(, EveryReader, testing::Values("pread", "page_cache"),
                         [](const auto& param) { return param.param; });

TEST_P(EveryReader, FillsManyExtentsColdAndWarmOfFilesOpenAndNot) {
  evict("data");
  const Descriptor fd(::open(path("data").c_str(), O_RDONLY));
  Prng prng(7);
  std::vector<std::string> out;
  std::vector<Read> reads;
  for (int i = 0; i < 300; ++i) {
    const uint64_t bytes = prng.below(i % 10 == 0 ? 1'500'000 : 5'000);
    out.emplace_back(bytes, '\0');
  }
  for (std::string& to : out) {
    const uint64_t offset = prng.below(content_.size() - to.size() + 1);
    reads.push_back({extent("data", offset, to.size(), prng.below(2) == 0 ? -1 : fd.get()),
                     reinterpret_cast<uint8_t*>(to.data()), 0});
  }
  const Status status = read_all(*reader_, reads);
  ASSERT_TRUE(status.is_ok()) << status.message();
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], content_.substr(reads[i].extent.offset, out[i].size())) << i;
}

TEST_P(EveryReader, ReadsLargeColdRecordsUpToTheLastByte) {
  const Descriptor fd(::open(path("data").c_str(), O_RDONLY));
  for (const uint64_t offset : {0U, 1U, 4'095U, 4'096U, 1'000'000U}) {
    evict("data");
    ASSERT_EQ(read(extent("data", offset, content_.size() - offset, fd.get())),
              content_.substr(offset));
  }
}

TEST_P(EveryReader, LeavesWhatItReadsInThePageCache) {
  const Descriptor fd(::open(path("data").c_str(), O_RDONLY));
  evict("data");
  const FileExtent large = extent("data", 1'000'000, 1'500'000, fd.get());
  if (begins_in_cache(large)) GTEST_SKIP() << "this file system keeps all in memory";
  ASSERT_EQ(read(large), content_.substr(1'000'000, 1'500'000));
  EXPECT_TRUE(begins_in_cache(large));
}

TEST_P(EveryReader, TellsOfEachReadByItsTagAndNoMoreThanItsDepthAreInFlight) {
  std::map<uint64_t, std::string> out;
  for (uint64_t tag = 0; tag < reader_->depth(); ++tag) {
    std::string& to = out[tag] = std::string(tag, '\0');
    reader_->submit({extent("data", 10 * tag, tag), reinterpret_cast<uint8_t*>(to.data()), tag});
    EXPECT_EQ(reader_->in_flight(), tag + 1);
  }
  std::vector<uint64_t> done;
  while (reader_->in_flight() > 0) {
    const ReadDone one = reader_->wait();
    EXPECT_TRUE(!reader_->has_done() || reader_->in_flight() > 0);
    EXPECT_TRUE(one.status.is_ok()) << one.status.message();
    EXPECT_EQ(out[one.tag], content_.substr(10 * one.tag, one.tag));
    done.push_back(one.tag);
  }
  std::sort(done.begin(), done.end());
  EXPECT_EQ(done.size(), out.size());
  EXPECT_TRUE(std::adjacent_find(done.begin(), done.end()) == done.end());
}

TEST_P(EveryReader, OneThatIsCutOffIsNamedAndOthersAreRead) {
  write("other", "abcdef");
  const FileExtent cut = extent("data", 2'000'000, 500'000);
  const FileExtent whole = extent("other", 1, 3);
  fs::resize_file(path("data"), 2'100'000);
  EXPECT_THAT(read(cut), AllOf(HasSubstr(path("data")), Says("since", "indexed")));
  EXPECT_EQ(read(whole), "bcd");
}

TEST_P(EveryReader, ACutWithinTheLastPageIsSeen) {
  const FileExtent cut = extent("data", 2'999'000, 1'000);
  fs::resize_file(path("data"), 2'999'999);
  EXPECT_THAT(read(cut), AllOf(HasSubstr(path("data")), Says("since", "indexed")));
}

TEST_P(EveryReader, OneThatWasWrittenToIsNamedWhereverThatWas) {
  const FileExtent then = extent("data", 0, 100);
  std::fstream(path("data"), std::ios::in | std::ios::out).seekp(2'000'000).put('x');
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("data").c_str(), times, 0), 0);
  EXPECT_THAT(read(then), AllOf(Names(path("data")), Says("written")));
}

TEST_P(EveryReader, OneThatHasGoneIsNamedAndOneThatIsOpenIsStillRead) {
  const Descriptor fd(::open(path("data").c_str(), O_RDONLY));
  const FileExtent gone = extent("data", 5, 10);
  FileExtent open = gone;
  open.fd = fd.get();
  fs::remove(path("data"));
  EXPECT_THAT(read(gone), AllOf(Names(path("data")), Says("No such file")));
  EXPECT_EQ(read(open), content_.substr(5, 10));
}

TEST_P(EveryReader, WhatCannotBeReadIsNamedWithItsPlace) {
  FileExtent directory = extent("data", 77, 10);
  const Descriptor fd(::open(fs::temp_directory_path().c_str(), O_RDONLY | O_DIRECTORY));
  directory.fd = fd.get();
  EXPECT_THAT(read(directory), Names(path("data"), "byte 77"));
}

TEST_P(EveryReader, GoesWhileReadsAreInFlight) {
  evict("data");
  std::vector<std::string> out(reader_->depth(), std::string(50'000, '\0'));
  for (size_t i = 0; i < out.size(); ++i)
    reader_->submit(
        {extent("data", 1'000 * i, 50'000), reinterpret_cast<uint8_t*>(out[i].data()), i});
  reader_.reset();
}

TEST_P(EveryReader, KeepsNoFileOpen) {
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  (void)read(extent("data", 0, 10));
  const auto before = open_files();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(read(extent("data", 100, 10)), content_.substr(100, 10));
  EXPECT_EQ(open_files(), before);
}

TEST(ReadAll, OfThoseThatFailTheFirstInTheirOrderIsTold) {
  const auto reader = std::move(make_pread_reader(4)).value();
  std::vector<Read> reads;
  for (int i = 0; i < 40; ++i)
    reads.push_back({{-1, "/nowhere/" + std::to_string(i), 0, 1, 1, 0}, nullptr, 0});
  EXPECT_THAT(read_all(*reader, reads).message(), HasSubstr("/nowhere/0 "));
}

TEST(FailedReads, OnlyThoseThatMayPassAreTriedAgain) {
  for (const int error : {EINTR, EAGAIN, EIO}) EXPECT_TRUE(may_pass(error));
  for (const int error : {EISDIR, EBADF, EINVAL, ENOENT}) EXPECT_FALSE(may_pass(error));
}

}  // namespace
}  // namespace lockstep::data
