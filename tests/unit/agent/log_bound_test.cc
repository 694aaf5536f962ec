#include "deploy/agent/log_bound.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "deploy/agent/process.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

constexpr LogBound kBound{100, 400};

class BoundLog : public ::testing::Test {
 protected:
  BoundLog() : fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  ~BoundLog() override { ::close(fd_); }
  // Prints as a worker does, which has the file open all the time.
  void print(int from, int to) const {
    for (int i = from; i < to; ++i) {
      const std::string line = "line " + std::to_string(i) + "\n";
      ASSERT_EQ(::write(fd_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    }
  }

  TemporaryDirectory temporary_;
  std::string path_ = temporary_.path() + "/worker-0.stderr";
  int fd_;
};

TEST_F(BoundLog, AShortLogStaysAsItIs) {
  print(0, 40);
  const std::string before = slurp(path_);
  EXPECT_FALSE(*bound_log(path_, kBound));
  EXPECT_EQ(slurp(path_), before);
  EXPECT_EQ(names_in(temporary_.path()).size(), 1u);
}

TEST_F(BoundLog, ALongOneKeepsItsBeginningAndItsNewestPart) {
  for (int round = 1; round <= 20; ++round) {
    print((round - 1) * 1'000, round * 1'000);
    EXPECT_TRUE(*bound_log(path_, kBound));
    print(90'000 + round, 90'001 + round);
    const std::string log = slurp(path_);
    const std::string newest = slurp(path_ + ".1");
    EXPECT_LT(log.size() + newest.size(), 1'100u);
    EXPECT_TRUE(log.starts_with("line 0\nline 1\n"));
    EXPECT_TRUE(log.ends_with("line " + std::to_string(90'000 + round) + "\n")) << log;
    EXPECT_NE(log.find(path_ + ".1"), std::string::npos);
    EXPECT_TRUE(newest.starts_with("line ")) << "from the begin of a line on";
    EXPECT_TRUE(newest.ends_with("line " + std::to_string(round * 1'000 - 1) + "\n"));
  }
}

TEST_F(BoundLog, ALineWithoutEndIsBounded) {
  const std::string text(5'000, 'x');
  ASSERT_EQ(::write(fd_, text.data(), text.size()), 5'000);
  EXPECT_TRUE(*bound_log(path_, kBound));
  EXPECT_LT(slurp(path_).size(), 400u);
  EXPECT_LE(slurp(path_ + ".1").size(), 400u);
}

TEST_F(BoundLog, TheLastWordsOfAProcessAreThoseAfterTheCut) {
  print(0, 1'000);
  const int64_t begin = end_of_file(path_);
  EXPECT_TRUE(*bound_log(path_, kBound));
  print(5, 6);
  EXPECT_TRUE(last_words(path_, begin).ends_with("line 5"));
}

// NCCL has its log open like this: without O_APPEND.
TEST_F(BoundLog, ALogWhoseWriterDoesNotAppendGivesItsBytesBack) {
  const std::string path = temporary_.path() + "/worker-0.nccl.txt";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  constexpr int64_t kMost = 1 << 20;
  const std::string line = std::string(999, 'x') + "\n";
  for (int round = 0; round < 4; ++round) {
    EXPECT_FALSE(*empty_log(path, kMost));
    for (int i = 0; i < 1'200; ++i)
      ASSERT_EQ(::write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    ASSERT_EQ(::fsync(fd), 0);  // else it takes nothing on the disk yet
    EXPECT_TRUE(*empty_log(path, kMost));
    EXPECT_EQ(slurp(path), "");
    EXPECT_LE(slurp(path + ".1").size(), static_cast<size_t>(kMost / 2));
    EXPECT_TRUE(slurp(path + ".1").ends_with(line));
  }
  ASSERT_EQ(::write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  ::close(fd);
  EXPECT_TRUE(slurp(path).ends_with(line));
}

TEST_F(BoundLog, ALinkIsLeftAlone) {
  print(0, 1'000);
  const std::string link = temporary_.path() + "/link";
  std::filesystem::create_symlink(path_, link);
  EXPECT_FALSE(*bound_log(link, kBound));
}

}  // namespace
}  // namespace lockstep
