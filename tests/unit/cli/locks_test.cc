// A file system that refuses locks is not a live job. This program has an flock() of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "comm/run/directory/run_lock.h"
#include "data/pack/hold_directory.h"
#include "deploy/cli/run/own_run_dir.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace {

int refusal = 0;  // an errno; 0: locks are as ever

}  // namespace

extern "C" int flock(int fd, int operation) {
  if (refusal == 0) return static_cast<int>(::syscall(SYS_flock, fd, operation));
  errno = refusal;
  return -1;
}

namespace lockstep {
namespace {

class Locks : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { refusal = GetParam(); }
  void TearDown() override { refusal = 0; }
  TemporaryDirectory temporary_;
};

TEST_P(Locks, ARunDirectoryWithoutThemIsAMatterOfTheMount) {
  const auto dir = RunDir::open(std::string(temporary_.path()) + "/run", false);
  EXPECT_THAT(dir, FailsWith(Code::kConfig, Names("run.lock"), Advises("mount")));
}

TEST_P(Locks, SoItIsForTheCoordinatorAndForReaders) {
  const std::string journal = std::string(temporary_.path()) + "/journal.db";
  EXPECT_THAT(RunLock::take(journal), FailsWith(Code::kConfig, Names("lock"), Advises("mount")));
  EXPECT_THAT(RunLock::take_to_read(journal),
              FailsWith(Code::kConfig, Names("lock"), Advises("mount")));
}

TEST_P(Locks, APackGoesOnWithoutOne) {
  EXPECT_TRUE(data::hold_directory(temporary_.path()).is_ok());
}

INSTANTIATE_TEST_SUITE_P(Errors, Locks, testing::Values(ENOLCK, ENOTSUP));

TEST(HeldLocks, AreInUse) {
  TemporaryDirectory temporary;
  const std::string path = std::string(temporary.path()) + "/run";
  const auto first = RunDir::open(path, false);
  ASSERT_TRUE(first.is_ok());
  EXPECT_THAT(RunDir::open(path, false), FailsWith(Code::kUsage, Names(path), Says("in use")));
}

}  // namespace
}  // namespace lockstep
