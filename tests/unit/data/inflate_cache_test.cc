#include "data/files/inflate_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "data/formats/arrays/idx_inflate.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

class InflateCache : public testing::Test {
 protected:
  void write_source(const std::string& plain) { write_file(source_, gzip_bytes(plain)); }

  Result<MappedFile> open() {
    auto source = MappedFile::open(source_);
    EXPECT_TRUE(source.is_ok());
    return open_inflated_idx(source_, source.value(), cache_, [this](auto&&...) { ++made_; });
  }

  std::string content() {
    const auto file = open();
    EXPECT_TRUE(file.is_ok()) << file.status().message();
    if (!file.is_ok()) return "";
    const auto bytes = file.value().bytes();
    return {bytes.begin(), bytes.end() - kTrailerBytes};
  }

  // Has the file been inflated since the last call?
  bool was_made() { return std::exchange(made_, 0) > 0; }

  TemporaryDirectory dir_;
  std::string source_ = dir_.path("images.gz");
  std::string cache_ = dir_.path("cache/deep");
  int made_ = 0;
};

TEST_F(InflateCache, InflatesOnceAndThenUsesTheCopy) {
  write_source(some_images(30, 4, 4));
  EXPECT_EQ(content(), some_images(30, 4, 4));
  EXPECT_TRUE(was_made());
  EXPECT_EQ(content(), some_images(30, 4, 4));
  EXPECT_FALSE(was_made());
}

TEST_F(InflateCache, MakesADamagedCopyAnew) {
  write_source(some_images(30, 4, 4));
  const std::string plain = content();
  const std::string path = inflated_path({source_, "", {}}, cache_);
  const std::string good = slurp(path);
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string damaged = good;
    damaged[i] ^= 1;
    write_file(path, damaged);
    was_made();
    EXPECT_EQ(content(), plain);
    EXPECT_TRUE(was_made()) << "damage at byte " << i << " went unseen";
  }
  write_file(path, good.substr(0, good.size() / 2));
  EXPECT_EQ(content(), plain);
  write_file(path, "");
  EXPECT_EQ(content(), plain);
}

TEST_F(InflateCache, FollowsASourceThatWasReplaced) {
  write_source(some_images(30, 4, 4, 1));
  EXPECT_EQ(content(), some_images(30, 4, 4, 1));
  write_source(some_images(30, 4, 4, 2));
  EXPECT_EQ(content(), some_images(30, 4, 4, 2));
}

TEST_F(InflateCache, KeepsAnOldMappingAliveWhenTheCopyIsReplaced) {
  write_source(some_images(30, 4, 4, 1));
  const auto old = open();
  write_source(some_images(30, 4, 4, 2));
  (void)content();
  const auto bytes = old.value().bytes();
  EXPECT_EQ(std::string(bytes.begin(), bytes.end() - kTrailerBytes), some_images(30, 4, 4, 1));
}

TEST_F(InflateCache, LeavesNoFileBehindWhenTheSourceIsDamaged) {
  write_file(source_, gzip_bytes(some_images(300, 9, 9)).substr(0, 5'000));
  const auto file = open();
  ASSERT_FALSE(file.is_ok());
  EXPECT_THAT(file, FailsWith(Code::kBadData, Names("images.gz"), Says("truncated")));
  EXPECT_TRUE(fs::is_empty(cache_));
}

TEST_F(InflateCache, SaysWhatToDoWhenTheCacheCannotBeWritten) {
  write_source(some_labels(5));
  write_file(dir_.path("cache"), "a file where the directory should be");
  const auto file = open();
  ASSERT_FALSE(file.is_ok());
  EXPECT_THAT(file, FailsWith(Code::kInternal, Names(cache_), Advises("data.cache_dir")));
}

TEST_F(InflateCache, LeavesRoomOnItsDisk) {
  const auto inflate = [&](const ByteSink& sink) -> Status {
    const std::vector<uint8_t> piece(1 << 20);
    for (int i = 0; i < 20; ++i) LOCKSTEP_RETURN_IF_ERROR(sink(piece, 0));
    return Status::ok();
  };
  write_source(some_labels(5));
  const auto source = MappedFile::open(source_);
  Compressed what{source_, "", inflate, "copy"};
  what.room_bytes = uint64_t{1} << 62;
  const auto file = open_inflated(what, *source, cache_, {});
  ASSERT_FALSE(file.is_ok());
  EXPECT_THAT(file, FailsWith(Code::kInternal, Says("left"), Advises("data.cache_dir")));
  EXPECT_TRUE(fs::is_empty(cache_));
  what.room_bytes = 0;
  EXPECT_TRUE(open_inflated(what, *source, cache_, {}).is_ok());
}

TEST_F(InflateCache, RemovesOnlyOldLeftOversOfKilledProcesses) {
  write_source(some_labels(5));
  fs::create_directories(cache_);
  const std::string path = inflated_path({source_, "", {}}, cache_);
  write_file(path + ".tmp.oldone", "x");
  write_file(path + ".tmp.young1", "x");
  fs::last_write_time(path + ".tmp.oldone",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  (void)content();
  EXPECT_FALSE(fs::exists(path + ".tmp.oldone"));
  EXPECT_TRUE(fs::exists(path + ".tmp.young1"));
}

TEST_F(InflateCache, IsRightWhenManyProcessesMakeItAtOnce) {
  const std::string plain = some_images(2'000, 28, 28);
  write_source(plain);
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(content() == plain ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
  }
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(cache_)) ++files;
  EXPECT_EQ(files, 1U);
}

}  // namespace
}  // namespace lockstep::data
