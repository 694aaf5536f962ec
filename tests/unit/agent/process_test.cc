#include "deploy/agent/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "comm/base/file.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

class Process : public testing::Test {
 protected:
  std::string output() const { return directory_ + "/out"; }

  ProcessSpec shell(const std::string& command) const {
    return {{"/bin/sh", "-c", command}, output(), 0};
  }

  static ProcessEnd wait_for(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return ProcessEnd::from_wait_status(status);
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
};

TEST_F(Process, ItsOutputGoesToTheFileAndItsLastWordsAreTheEnd) {
  const auto pid = start_process(shell("echo first; echo last >&2; exit 3"));
  ASSERT_TRUE(pid.is_ok());
  const ProcessEnd end = wait_for(*pid);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.text(), "exited with code 3");
  EXPECT_EQ(last_words(output()), "first\nlast");
  EXPECT_EQ(last_words(output(), 0, 7), "last");
  EXPECT_EQ(last_words(output(), 6), "last") << "what was there before is another's";
  EXPECT_EQ(last_words(output(), end_of_file(output())), "");
}

TEST_F(Process, ALibraryIsPreloadedBeforeThoseThatAreNamedAlready) {
  const auto preloaded = [&](const std::string& library) {
    ProcessSpec spec = shell("echo $LD_PRELOAD");
    spec.output_path = directory_ + "/preload";
    spec.preload = library;
    std::filesystem::remove(spec.output_path);
    const auto pid = start_process(spec);
    EXPECT_TRUE(pid.is_ok());
    wait_for(*pid);
    const std::string words = last_words(spec.output_path);
    return words.substr(words.rfind('\n') + 1);  // the loader complains of what is not there
  };
  EXPECT_EQ(preloaded(""), "");
  EXPECT_EQ(preloaded("/no/a.so"), "/no/a.so");
  ::setenv("LD_PRELOAD", "/no/b.so", 1);
  const std::string both = preloaded("/no/a.so");
  const std::string own = preloaded("");
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(both, "/no/a.so:/no/b.so");
  EXPECT_EQ(own, "/no/b.so");
}

TEST_F(Process, ItsVariablesAreItsParentsAndThoseThatItWasGiven) {
  ::setenv("LOCKSTEP_TEST_KEPT", "kept", 1);
  ::setenv("LOCKSTEP_TEST_REPLACED", "old", 1);
  ::setenv("LOCKSTEP_TEST_REPLACED_NOT", "other", 1);
  ProcessSpec spec = shell(
      "echo $LOCKSTEP_TEST_KEPT,$LOCKSTEP_TEST_REPLACED,$LOCKSTEP_TEST_REPLACED_NOT,"
      "$LOCKSTEP_TEST_NEW; env | grep -c '^LOCKSTEP_TEST_REPLACED='");
  spec.env = {"LOCKSTEP_TEST_REPLACED=new", "LOCKSTEP_TEST_NEW=a=b c"};
  const auto pid = start_process(spec);
  for (const char* name :
       {"LOCKSTEP_TEST_KEPT", "LOCKSTEP_TEST_REPLACED", "LOCKSTEP_TEST_REPLACED_NOT"})
    ::unsetenv(name);
  ASSERT_TRUE(pid.is_ok());
  EXPECT_EQ(wait_for(*pid).exit_code, 0);
  EXPECT_EQ(last_words(output()), "kept,new,other,a=b c\n1");
}

TEST_F(Process, VariablesOfItsParentCanBeLeftOutButNoneThatItWasGiven) {
  ::setenv("LOCKSTEP_TEST_OUT", "old", 1);
  ::setenv("LOCKSTEP_TEST_IN", "in", 1);
  ProcessSpec spec = shell("echo ${LOCKSTEP_TEST_OUT-none},$LOCKSTEP_TEST_IN,$LOCKSTEP_TEST_GIVEN");
  spec.env = {"LOCKSTEP_TEST_GIVEN=given"};
  spec.is_left_out = [](std::string_view name) {
    return name == "LOCKSTEP_TEST_OUT" || name == "LOCKSTEP_TEST_GIVEN";
  };
  const auto pid = start_process(spec);
  for (const char* name : {"LOCKSTEP_TEST_OUT", "LOCKSTEP_TEST_IN"}) ::unsetenv(name);
  ASSERT_TRUE(pid.is_ok());
  wait_for(*pid);
  EXPECT_EQ(last_words(output()), "none,in,given");
}

TEST_F(Process, ALibraryIsPreloadedBeforeAGivenOneToo) {
  ProcessSpec spec = shell("echo $LD_PRELOAD");
  spec.preload = "/no/a.so";
  spec.env = {"LD_PRELOAD=/no/c.so"};
  const auto pid = start_process(spec);
  ASSERT_TRUE(pid.is_ok());
  wait_for(*pid);
  const std::string words = last_words(output());
  EXPECT_EQ(words.substr(words.rfind('\n') + 1), "/no/a.so:/no/c.so");
}

TEST_F(Process, ADeathBySignalIsNamed) {
  const auto pid = start_process(shell("kill -9 $$"));
  ASSERT_TRUE(pid.is_ok());
  const ProcessEnd end = wait_for(*pid);
  EXPECT_EQ(end.exit_code, -1);
  EXPECT_EQ(end.text(), "was killed by signal 9 (Killed)");
}

TEST_F(Process, AProgramThatIsNotThereIsAnErrorOfTheStart) {
  const auto pid = start_process({{"/nowhere/lockstep-worker"}, "", 0});
  EXPECT_EQ(pid.status().code(), Code::kConfig);
  EXPECT_THAT(pid.status().message(), testing::HasSubstr("/nowhere/lockstep-worker"));
  EXPECT_FALSE(has_children());
}

TEST_F(Process, AnOutputThatCannotBeOpenedIsNamedAndNotTheProgramAlone) {
  ProcessSpec spec = shell("true");
  spec.output_path = directory_ + "/nowhere/worker-0.stderr";
  const auto pid = start_process(spec);
  EXPECT_EQ(pid.status().code(), Code::kConfig);
  EXPECT_THAT(pid.status().message(), testing::HasSubstr(spec.output_path));
  EXPECT_FALSE(has_children());
}

TEST_F(Process, ItLeadsAGroupOfItsOwnAndInheritsNothing) {
  const int leaked = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  sigset_t block;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &block, nullptr);
  const auto pid =
      start_process(shell("ps -o pgid= -p $$ | tr -d ' '; ls -l /proc/self/fd | grep -c /dev/null; "
                          "grep SigBlk /proc/self/status"));
  ::pthread_sigmask(SIG_UNBLOCK, &block, nullptr);
  ::close(leaked);
  ASSERT_TRUE(pid.is_ok());
  wait_for(*pid);
  const std::string text = last_words(output());
  EXPECT_THAT(text, testing::StartsWith(std::to_string(*pid) + "\n1\n"));
  EXPECT_THAT(text, testing::HasSubstr("0000000000000000"));
}

TEST_F(Process, ItDiesWithItsParent) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ProcessSpec spec = shell("exec sleep 1000");
    spec.parent_death_signal = SIGKILL;
    const auto child = start_process(spec);
    const pid_t pid = child.is_ok() ? *child : -1;
    ::_exit(::write(pipe[1], &pid, sizeof pid) == sizeof pid ? 0 : 1);
  }
  pid_t orphan = -1;
  ASSERT_EQ(::read(pipe[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  ASSERT_GT(orphan, 1);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, orphan, 0));
  EXPECT_TRUE(wait_for(parent).is_success());
  if (pidfd >= 0) {  // else it is dead and reaped already
    pollfd ended{pidfd, POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, 30'000), 1) << "it outlives its parent";
    ::close(pidfd);
  }
  ::close(pipe[0]);
  ::close(pipe[1]);
}

// Signals to a process's group while it starts others. Gives the pids in which its handler ran.
std::set<pid_t> pids_of_handlers_while(const std::function<void()>& start) {
  static int handled[2];
  if (::pipe2(handled, O_NONBLOCK) != 0) return {};
  struct sigaction tell {};
  tell.sa_handler = [](int) {
    const pid_t pid = ::getpid();
    [[maybe_unused]] const ssize_t n = ::write(handled[1], &pid, sizeof pid);
  };
  ::sigaction(SIGTERM, &tell, nullptr);
  ::setpgid(0, 0);
  std::atomic<bool> has_ended = false;
  std::set<pid_t> pids;
  std::thread sender([&] {
    while (!has_ended) {
      ::kill(0, SIGTERM);
      pid_t pid = 0;
      while (::read(handled[0], &pid, sizeof pid) == sizeof pid) pids.insert(pid);
    }
  });
  start();
  has_ended = true;
  sender.join();
  return pids;
}

TEST_F(Process, SignalsNeitherHideThatAStartFailedNorReachTheParentsHandlersInTheChild) {
  const pid_t child = ::fork();  // a group of its own
  if (child == 0) {
    int hidden = 0;
    const std::set<pid_t> pids = pids_of_handlers_while([&] {
      for (int i = 0; i < 200; ++i)
        hidden += start_process({{directory_ + "/absent"}, output(), 0}).is_ok() ? 1 : 0;
    });
    ::_exit((hidden == 0 ? 0 : 1) + (pids == std::set<pid_t>{::getpid()} ? 0 : 2));
  }
  EXPECT_EQ(wait_for(child).exit_code, 0) << "1: starts that failed were hidden; 2: handlers ran";
}

TEST_F(Process, ControlBytesInLastWordsBecomeBlanks) {
  ASSERT_TRUE(replace_file(output(), "red \x1b[31mtext\n\n").is_ok());
  EXPECT_EQ(last_words(output()), "red  [31mtext");
  EXPECT_EQ(last_words(directory_ + "/absent"), "");
}

TEST_F(Process, ReapingGivesEachEndedChildOnce) {
  const auto pid = start_process(shell("exit 0"));
  ASSERT_TRUE(pid.is_ok());
  EXPECT_TRUE(has_children());
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(*pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(reap_one().pid, *pid);
  EXPECT_EQ(reap_one().pid, 0);
  EXPECT_FALSE(has_children());
}

}  // namespace
}  // namespace lockstep
