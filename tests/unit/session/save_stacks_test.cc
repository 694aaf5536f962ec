// The stacks of a process that hangs: every thread's, also of one that does not answer.
#include "worker/process/save_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "comm/base/file.h"
#include "comm/base/thread_name.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A thread that waits until it is let go.
class Waiter {
 public:
  explicit Waiter(bool deaf)
      : thread_([this, deaf] {
          name_this_thread(deaf ? "deaf" : "waiter");
          if (deaf) {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, nullptr);
          }
          std::unique_lock lock(mutex_);
          is_there_ = true;
          changed_.notify_all();
          changed_.wait(lock, [this] { return is_over_; });
        }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_there_; });
  }
  ~Waiter() {
    {
      std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_there_ = false;
  bool is_over_ = false;
  std::thread thread_;
};

std::string stacks(const std::string& path) {
  EXPECT_TRUE(save_stacks(path).is_ok());
  return read_file(path, 1 << 20).value();
}

TEST(SaveStacks, ShowsEveryThreadWithItsNameAndFrames) {
  TemporaryDirectory directory;
  Waiter waiter(/*deaf=*/false);
  const std::string text = stacks(directory.path() + "/stacks");
  EXPECT_THAT(text, ContainsRegex("thread [0-9]+ waiter\n[^\n]*\\("));
  EXPECT_THAT(text, HasSubstr("addr2line"));
  const std::string again = directory.path() + "/logs/again";  // somebody has removed the folder
  EXPECT_THAT(stacks(again), HasSubstr("waiter"));
  ASSERT_TRUE(add_to_stacks(again, "frames of Python\n").is_ok());
  EXPECT_THAT(read_file(again, 1 << 20).value(),
              AllOf(HasSubstr("waiter"), HasSubstr("of Python")));
}

TEST(SaveStacks, AThreadThatDoesNotAnswerIsListedWithWhatTheKernelSays) {
  TemporaryDirectory directory;
  Waiter waiter(/*deaf=*/true);
  EXPECT_THAT(stacks(directory.path() + "/stacks"),
              ContainsRegex("thread [0-9]+ deaf\n  does not answer; the kernel says: [0-9]+ "));
}

TEST(SaveStacks, AFileThatCannotBeWrittenIsSaid) {
  EXPECT_THAT(save_stacks("/nowhere/logs/stacks").message(), HasSubstr("/nowhere/logs/stacks"));
}

}  // namespace
}  // namespace lockstep
