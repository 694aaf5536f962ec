#include "deploy/cli/base/stop_signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(StopSignals, OneThatComesEarlyIsHeldAndDeliveredOnRelease) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_DFL);  // also where these tests run under nohup
      StopSignals signals;
      if (signals.is_pending()) ::_exit(1);
      ::raise(signal);
      if (!signals.is_pending()) ::_exit(2);
      signals.release();
      ::_exit(3);  // it has no handler, so it is dead by now
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    EXPECT_EQ(WTERMSIG(status), signal);
  }
}

TEST(StopSignals, OneThatWasAnsweredDoesNotTakeThePlaceOfTheExitCode) {
  const pid_t child = ::fork();
  if (child == 0) {
    {
      StopSignals signals;
      ::raise(SIGINT);
      ::raise(SIGTERM);
      if (!signals.is_pending()) ::_exit(2);
    }
    ::raise(SIGINT);  // also one that comes while the process ends
    ::_exit(75);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 75);
}

TEST(StopSignals, OneThatIsToBeIgnoredIsNoWishToStop) {
  for (const int signal : {SIGINT, SIGHUP}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_IGN);
      StopSignals signals;
      ::raise(signal);
      if (signals.is_pending()) ::_exit(1);
      ::raise(SIGTERM);
      ::_exit(signals.is_pending() ? 75 : 2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 75) << signal;
  }
}

TEST(StopSignals, OthersAreNotHeld) {
  StopSignals signals;
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(::sigismember(&blocked, SIGCHLD), 0);
  EXPECT_EQ(::sigismember(&blocked, SIGTERM), 1);
}

}  // namespace
}  // namespace lockstep
