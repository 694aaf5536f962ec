#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "comm/base/file.h"
#include "deploy/cli/run/own_run_dir.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RunDirectory : public testing::Test {
 protected:
  void SetUp() override { path_ = root_ + "/a/b"; }

  void put(const std::string& name) {
    std::filesystem::create_directories(path_);
    ASSERT_TRUE(replace_file(path_ + "/" + name, "x").is_ok());
  }

  std::string refusal(bool resume = false, Code code = Code::kUsage) {
    const auto dir = RunDir::open(path_, resume);
    EXPECT_EQ(dir.status().code(), code);
    return dir.status().message();
  }

  TemporaryDirectory temporary_;
  std::string root_ = temporary_.path();
  std::string path_;
};

TEST_F(RunDirectory, ANewOneIsMadeWithItsParents) {
  const auto dir = RunDir::open(path_ + "/", false);
  ASSERT_TRUE(dir.is_ok()) << dir.status().message();
  EXPECT_EQ(dir->path(), path_);
  EXPECT_TRUE(std::filesystem::is_directory(path_ + "/logs"));
}

TEST_F(RunDirectory, WhileOneLivesASecondIsRefusedWithThePid) {
  const auto dir = RunDir::open(path_, false);
  ASSERT_TRUE(dir.is_ok());
  EXPECT_THAT(refusal(), AllOf(Says("live job"), HasSubstr(std::to_string(::getpid()))));
}

TEST_F(RunDirectory, ALivingCoordinatorIsNamed) {
  put("lock");
  ASSERT_TRUE(replace_file(path_ + "/coordinator.json",
                           R"({"pid": 4321, "control": "127.0.0.1:1", "http": "127.0.0.1:2"})")
                  .is_ok());
  const int fd = ::open((path_ + "/lock").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(fd, LOCK_EX | LOCK_NB), 0);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("in use"), Names("4321")));
  EXPECT_THAT(refusal(true), HasSubstr("in use"));
  ::close(fd);
}

TEST_F(RunDirectory, WhatADeadJobLeftNamesTheChoices) {
  put("journal.db");
  put("job.pb");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("--resume"), HasSubstr("another --run-dir")));
  EXPECT_TRUE(RunDir::open(path_, true).is_ok());
}

TEST_F(RunDirectory, AnAttemptThatNeverBeganMayBeTriedAgain) {
  { ASSERT_TRUE(RunDir::open(path_, false).is_ok()); }
  put("job.yaml");
  EXPECT_TRUE(RunDir::open(path_, false).is_ok());
}

TEST_F(RunDirectory, ForeignDirectoriesAndFilesAreLeftAlone) {
  put("thesis.tex");
  EXPECT_THAT(refusal(), Says("not a run directory"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/logs"));
  path_ += "/thesis.tex";
  EXPECT_THAT(refusal(), Says("is a file"));
}

TEST_F(RunDirectory, ANameThatMessagesCannotHoldIsRefused) {
  for (const char* name : {"/\xff", "/a\nb", "/\xc3"}) {
    path_ = root_ + name;
    EXPECT_THAT(refusal(), AllOf(Says("UTF-8"), Advises("--run-dir")));
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  path_ = root_ + "/läuft 日本";
  EXPECT_TRUE(RunDir::open(path_, false).is_ok());
}

TEST_F(RunDirectory, NothingToResumeIsSaid) {
  EXPECT_THAT(refusal(true, Code::kNoInput), Says("no run"));
  { ASSERT_TRUE(RunDir::open(path_, false).is_ok()); }
  EXPECT_THAT(refusal(true, Code::kNoInput), Advises("without --resume"));
}

TEST_F(RunDirectory, AnAttemptThatCameToNothingLeavesNothing) {
  auto dir = RunDir::open(path_, false);
  ASSERT_TRUE(dir.is_ok());
  put("journal.db");
  EXPECT_TRUE(dir->discard());
  EXPECT_TRUE(std::filesystem::is_empty(root_)) << "its parent was made with it";
}

TEST_F(RunDirectory, OnlyWhatWasMadeIsRemoved) {
  std::filesystem::create_directories(path_);
  auto dir = RunDir::open(path_, false);
  ASSERT_TRUE(dir.is_ok());
  EXPECT_FALSE(dir->discard());
  EXPECT_TRUE(std::filesystem::exists(path_ + "/logs"));
}

TEST_F(RunDirectory, AParentThatHasOtherThingsStays) {
  auto dir = RunDir::open(path_, false);
  auto other = RunDir::open(root_ + "/a/c", false);
  ASSERT_TRUE(dir.is_ok() && other.is_ok());
  EXPECT_TRUE(dir->discard());
  EXPECT_TRUE(std::filesystem::exists(root_ + "/a/c/logs"));
}

TEST_F(RunDirectory, OnlyWhatIsHalfWrittenIsSweptAway) {
  const auto dir = RunDir::open(path_, false);
  ASSERT_TRUE(dir.is_ok());
  const std::string step = "step-0000000007-g1-m1";
  for (const char* name : {"job.pb", "summary.json.tmp.4711"}) put(name);
  std::filesystem::create_directory(path_ + "/checkpoints/tmp-" + step);
  std::filesystem::create_directory(path_ + "/checkpoints/" + step);
  dir->sweep();
  EXPECT_TRUE(std::filesystem::exists(path_ + "/job.pb"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/summary.json.tmp.4711"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/checkpoints/tmp-" + step));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/checkpoints/" + step));
}

TEST_F(RunDirectory, TheDefaultNameIsTheJobAndTheTime) {
  EXPECT_EQ(default_run_dir("fashion", 1'795'241'700'123), "runs/fashion-20261121-061500");
}

}  // namespace
}  // namespace lockstep
