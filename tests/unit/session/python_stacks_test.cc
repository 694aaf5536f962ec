// Where the Python of a process and of those below it stands.
#include "worker/process/python_stacks.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace lockstep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(PythonStacks, TheInnermostFramesOfTheLastThreadAreTheScripts) {
  EXPECT_EQ(innermost_frames(R"(Thread 0x01 (most recent call first):
  File "/p/lockstep/_debugger.py", line 48 in _look

Current thread 0x02 (most recent call first):
  File "/p/lockstep/_data/_feed.py", line 9 in wait
  File "/x/data.py", line 7 in read
  File "/x/train.py", line 33 in <module>
)"),
            "data.py:7 in read, from train.py:33 in <module>");
  EXPECT_EQ(innermost_frames("Thread 0x1:\n  File \"/p/lockstep/_a.py\", line 1 in f\n"),
            "_a.py:1 in f");
  EXPECT_EQ(innermost_frames("garbage\n  File \"cut"), "");
  EXPECT_EQ(innermost_frames(""), "");
}

// A fork of Python opens what it has inherited again, and would write over what is there.
TEST(PythonStacks, AProcessThatOpensTheMemoryAgainWritesAtItsEnd) {
  const int memory = make_stack_memory();
  ASSERT_EQ(::write(memory, "first", 5), 5);
  const std::string path = "/proc/self/fd/" + std::to_string(memory);
  const int again =
      ::open(path.c_str(), (::fcntl(memory, F_GETFL) & O_APPEND) | O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::write(again, "second", 6), 6);
  char text[12] = {};
  EXPECT_EQ(::pread(memory, text, 11, 0), 11);
  EXPECT_STREQ(text, "firstsecond");
  ::close(again);
  ::close(memory);
}

int memory_of_handler = -1;

void answer(int) {
  constexpr char kFrames[] = "Thread 0x1:\n  File \"/x/read.py\", line 5 in g\n";
  (void)!::write(memory_of_handler, kFrames, std::strlen(kFrames));
}

// A process below this one, asleep, until it is let go.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  std::string name() const { return "process " + std::to_string(pid_); }

 private:
  const pid_t pid_;
};

std::string text_of(const PythonStacks& stacks) {
  std::string text;
  for (const std::string& line : stacks.brief) text += line + "\n";
  return text;
}

TEST(PythonStacks, EveryProcessAnswersAndWhoCannotIsListedWithItsState) {
  const Child deaf;  // has no handler: the signal would end it
  memory_of_handler = make_stack_memory();
  ASSERT_GE(memory_of_handler, 0);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(::sigaction(python_stack_signal(), &action, &before), 0);
  const Child child;
  const Child stopped;
  stopped.stop();
  const PythonStacks stacks = take_python_stacks(memory_of_handler);
  ::sigaction(python_stack_signal(), &before, nullptr);
  ::close(memory_of_handler);
  const std::string text = text_of(stacks);
  EXPECT_THAT(text, ContainsRegex("^process " + std::to_string(::getpid()) +
                                  " \\([^\n]*\\) stands at read.py:5 in g\n"));
  EXPECT_THAT(text, ContainsRegex(child.name() + " \\([^\n]*\\) stands at read.py:5 in g\n"));
  EXPECT_THAT(text, ContainsRegex(stopped.name() + " \\([^\n]*\\) is in state T"));
  EXPECT_THAT(text, ContainsRegex(deaf.name() + " \\([^\n]*\\) is in state S"));
  EXPECT_THAT(stacks.whole, HasSubstr("File \"/x/read.py\", line 5 in g"));
}

}  // namespace
}  // namespace lockstep
