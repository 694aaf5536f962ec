// A writer is killed, or its disk fails, at each file operation in turn: what is left must either
// not count as a checkpoint or be a right one, and the older checkpoint must be untouched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/run/checkpoint/weights_hash.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::manifest_of;
using testing::TestState;

// Calls `fault` before every operation with its number; an error it returns is the operation's.
// An append writes its first half before the fault: writes tear.
class FaultyFileOps final : public FileOps {
 public:
  explicit FaultyFileOps(std::function<Status(int)> fault) : fault_(std::move(fault)) {}
  int operations() const { return count_; }

  Status make_directory(const std::string& path) override {
    LOCKSTEP_RETURN_IF_ERROR(next());
    return real_->make_directory(path);
  }
  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override {
    LOCKSTEP_RETURN_IF_ERROR(next());
    LOCKSTEP_ASSIGN_OR_RETURN(auto file, real_->create(path));
    return std::unique_ptr<OutputFile>(std::make_unique<File>(*this, std::move(file)));
  }
  Status rename(const std::string& from, const std::string& to) override {
    LOCKSTEP_RETURN_IF_ERROR(next());
    return real_->rename(from, to);
  }
  Status sync_directory(const std::string& path) override {
    LOCKSTEP_RETURN_IF_ERROR(next());
    return real_->sync_directory(path);
  }
  Status remove_directory(const std::string& path) override {
    LOCKSTEP_RETURN_IF_ERROR(next());
    return real_->remove_directory(path);
  }

 private:
  class File final : public OutputFile {
   public:
    File(FaultyFileOps& ops, std::unique_ptr<OutputFile> real)
        : ops_(ops), real_(std::move(real)) {}
    Status append(std::span<const std::byte> bytes) override {
      LOCKSTEP_RETURN_IF_ERROR(real_->append(bytes.first(bytes.size() / 2)));
      LOCKSTEP_RETURN_IF_ERROR(ops_.next());
      return real_->append(bytes.subspan(bytes.size() / 2));
    }
    Status finish() override {
      LOCKSTEP_RETURN_IF_ERROR(ops_.next());
      return real_->finish();
    }

   private:
    FaultyFileOps& ops_;
    std::unique_ptr<OutputFile> real_;
  };

  Status next() { return fault_(count_++); }

  std::function<Status(int)> fault_;
  std::unique_ptr<FileOps> real_ = posix_file_ops();
  int count_ = 0;
};

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Notes what must be in order for a power cut to leave nothing wrong.
class LoggedFileOps final : public FileOps {
 public:
  explicit LoggedFileOps(std::vector<std::string>& done) : done_(done) {}
  Status make_directory(const std::string& path) override { return real_->make_directory(path); }
  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override {
    LOCKSTEP_ASSIGN_OR_RETURN(auto file, real_->create(path));
    return std::unique_ptr<OutputFile>(
        std::make_unique<File>(done_, last_name(path), std::move(file)));
  }
  Status rename(const std::string& from, const std::string& to) override {
    done_.push_back("rename to " + last_name(to));
    return real_->rename(from, to);
  }
  Status sync_directory(const std::string& path) override {
    done_.push_back("sync " + last_name(path));
    return real_->sync_directory(path);
  }
  Status remove_directory(const std::string& path) override {
    return real_->remove_directory(path);
  }

 private:
  class File final : public OutputFile {
   public:
    File(std::vector<std::string>& done, std::string name, std::unique_ptr<OutputFile> real)
        : done_(done), name_(std::move(name)), real_(std::move(real)) {}
    Status append(std::span<const std::byte> bytes) override { return real_->append(bytes); }
    Status finish() override {
      done_.push_back("finish " + name_);
      return real_->finish();
    }

   private:
    std::vector<std::string>& done_;
    const std::string name_;
    std::unique_ptr<OutputFile> real_;
  };

  std::vector<std::string>& done_;
  std::unique_ptr<FileOps> real_ = posix_file_ops();
};

class CheckpointCrash : public ::testing::Test {
 protected:
  CheckpointCrash() {
    TestState state = TestState::small(1);
    auto info = write_checkpoint(*posix_file_ops(), dir_, state.tensors(), manifest_of(100));
    EXPECT_TRUE(info.is_ok());
    older_ = info->path;
  }

  static int operations_of_a_write() {
    TemporaryDirectory elsewhere;
    TestState state = TestState::small(2);
    FaultyFileOps files([](int) { return Status::ok(); });
    EXPECT_TRUE(write_checkpoint(files, elsewhere.path() + "/c", state.tensors(), manifest_of(200))
                    .is_ok());
    return files.operations();
  }

  // The older checkpoint is whole; a newer one is right if it is there at all.
  void expect_nothing_wrong() {
    EXPECT_TRUE(verify_checkpoint(older_).is_ok());
    const auto list = list_checkpoints(dir_);
    ASSERT_TRUE(list.is_ok());
    for (const ListedCheckpoint& item : *list) {
      ASSERT_TRUE(item.status.is_ok()) << item.path << ": " << item.status.message();
      TestState expected = TestState::small(item.name.step == 100 ? 1 : 2);
      TestState loaded = TestState::small(9);
      ASSERT_TRUE(load_checkpoint(item.path, loaded.tensors()).is_ok());
      EXPECT_EQ(weights_hash(loaded.tensors(), true), weights_hash(expected.tensors(), true));
    }
  }

  // After whatever happened the same checkpoint can be written.
  void expect_second_try_succeeds() {
    auto files = posix_file_ops();
    ASSERT_TRUE(remove_leftovers(*files, dir_).is_ok());
    TestState state = TestState::small(2);
    const auto info = write_checkpoint(*files, dir_, state.tensors(), manifest_of(200));
    ASSERT_TRUE(info.is_ok()) << info.status().message();
    EXPECT_THAT(names_in(dir_), ElementsAre("step-0000000100-g1-m1", "step-0000000200-g1-m1"));
  }

  TemporaryDirectory temporary_;
  std::string dir_ = temporary_.path() + "/checkpoints";
  std::string older_;
};

TEST_F(CheckpointCrash, KilledAtAnyFileOperationLeavesOldOrNewButNothingWrong) {
  const int operations = operations_of_a_write();
  EXPECT_GT(operations, 10);
  for (int kill_at = 0; kill_at < operations; ++kill_at) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      FaultyFileOps files([&](int n) {
        if (n == kill_at) ::raise(SIGKILL);
        return Status::ok();
      });
      TestState state = TestState::small(2);
      (void)write_checkpoint(files, dir_, state.tensors(), manifest_of(200));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "operation " << kill_at;
    expect_nothing_wrong();
  }
  expect_second_try_succeeds();
}

// After a power cut a disk holds what was synced: a name may be there before what it names, unless
// the directory of the files was synced before the rename, and the parent directory after it.
TEST_F(CheckpointCrash, BothDirectoriesAreOnDiskBeforeTheCheckpointIsReported) {
  std::vector<std::string> done;
  LoggedFileOps files(done);
  TestState state = TestState::small(2);
  ASSERT_TRUE(write_checkpoint(files, dir_, state.tensors(), manifest_of(200)).is_ok());
  const std::string name = checkpoint_name({200, 1, 1});
  ASSERT_GE(done.size(), 4u);
  EXPECT_THAT(std::vector<std::string>(done.end() - 4, done.end()),
              ElementsAre("finish manifest.json", "sync tmp-" + name, "rename to " + name,
                          "sync checkpoints"));
}

TEST_F(CheckpointCrash, AnErrorOfAnyFileOperationIsReportedAndCleanedUp) {
  const int operations = operations_of_a_write();
  // Operation 0 removes leftovers; the last one syncs the directory after the rename.
  for (int fail_at = 0; fail_at < operations; ++fail_at) {
    FaultyFileOps files([&](int n) {
      return n == fail_at ? Status(Code::kInternal, "No space left on device") : Status::ok();
    });
    TestState state = TestState::small(2);
    const auto info = write_checkpoint(files, dir_, state.tensors(), manifest_of(200));
    EXPECT_EQ(info.status().code(), Code::kInternal) << "operation " << fail_at;
    EXPECT_THAT(info.status().message(), HasSubstr("No space left on device"));
    expect_nothing_wrong();
    if (fail_at + 1 < operations) {
      EXPECT_THAT(names_in(dir_), ElementsAre("step-0000000100-g1-m1")) << "operation " << fail_at;
    }
  }
}

TEST_F(CheckpointCrash, AFileTheSystemRefusesToGrowIsAClearErrorAndTheOlderSurvives) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{300, 300};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    TestState state = TestState::small(2);
    const auto info = write_checkpoint(*posix_file_ops(), dir_, state.tensors(), manifest_of(200));
    const bool as_wanted =
        !info.is_ok() && info.status().code() == Code::kInternal &&
        info.status().message().find("File too large") != std::string::npos &&
        info.status().message().find("step-0000000200-g1-m1") != std::string::npos;
    ::_exit(as_wanted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_THAT(names_in(dir_), ElementsAre("step-0000000100-g1-m1"));
  expect_nothing_wrong();
  expect_second_try_succeeds();
}

TEST_F(CheckpointCrash, KilledWhilePruningLeavesWholeCheckpointsOnly) {
  for (const Step step : {200, 300}) {
    TestState state = TestState::small(2);
    ASSERT_TRUE(
        write_checkpoint(*posix_file_ops(), dir_, state.tensors(), manifest_of(step)).is_ok());
  }
  const std::vector<std::string> drop = {checkpoint_name({100, 1, 1})};
  for (int kill_at = 0; kill_at < 4; ++kill_at) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      FaultyFileOps files([&](int n) {
        if (n == kill_at) ::raise(SIGKILL);
        return Status::ok();
      });
      (void)prune_checkpoints(files, dir_, drop, 2);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const auto left = list_checkpoints(dir_);
    for (const ListedCheckpoint& item : *left) EXPECT_TRUE(verify_checkpoint(item.path).is_ok());
  }
  EXPECT_EQ(list_checkpoints(dir_)->size(), 2u);
}

}  // namespace
}  // namespace lockstep
