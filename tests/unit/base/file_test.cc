#include "comm/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

class File : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "lockstep-file-" + std::to_string(::getpid());
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  size_t entries() const { return std::distance(std::filesystem::directory_iterator(dir_), {}); }
  std::string dir_;
};

TEST_F(File, ReplacingShowsTheNewContentAndLeavesNoTemporaryFile) {
  const std::string path = dir_ + "/a";
  ASSERT_TRUE(replace_file(path, "old").is_ok());
  ASSERT_TRUE(replace_file(path, "new", 0600).is_ok());
  EXPECT_EQ(*read_file(path, 100), "new");
  EXPECT_EQ(entries(), 1u);
  struct stat st {};
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(File, AFailedReplacementKeepsTheOldContent) {
  const std::string path = dir_ + "/taken";
  std::filesystem::create_directories(path + "/child");  // a directory cannot be replaced
  const Status status = replace_file(path, "new");
  EXPECT_THAT(status, FailsWith(Code::kInternal, Names(path)));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, ALinkInThePlaceOfATemporaryFileIsNotFollowed) {
  const std::string victim = dir_ + "/victim";
  ASSERT_TRUE(replace_file(victim, "precious").is_ok());
  const std::string path = dir_ + "/a";
  std::filesystem::create_symlink(victim, path + ".tmp." + std::to_string(::getpid()));
  ASSERT_TRUE(replace_file(path, "new").is_ok());
  EXPECT_EQ(*read_file(victim, 100), "precious");
  EXPECT_EQ(*read_file(path, 100), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
}

TEST_F(File, AMissingFileIsNoInputAndNamesThePath) {
  const Status status = read_file(dir_ + "/nothing", 100).status();
  EXPECT_THAT(status, FailsWith(Code::kNoInput, Names("/nothing")));
}

TEST_F(File, AFileOverTheLimitIsRefused) {
  ASSERT_TRUE(replace_file(dir_ + "/big", std::string(101, 'x')).is_ok());
  EXPECT_EQ(read_file(dir_ + "/big", 100).status().code(), Code::kUsage);
  EXPECT_TRUE(read_file(dir_ + "/big", 101).is_ok());
}

}  // namespace
}  // namespace lockstep
