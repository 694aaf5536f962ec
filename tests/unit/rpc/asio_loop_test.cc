#include "comm/rpc/asio_loop.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace lockstep::rpc {
namespace {

TEST(AsioLoop, WhatItHandledDoesNotTakeThePlaceOfTheExitCodeOnceItHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    {
      AsioLoop loop;
      int seen = 0;
      loop.on_signals({SIGTERM, SIGINT}, [&seen](int) { ++seen; });
      ::raise(SIGTERM);
      while (seen == 0) loop.run_one(1'000);
    }
    ::raise(SIGINT);
    ::raise(SIGTERM);
    ::_exit(75);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 75);
}

}  // namespace
}  // namespace lockstep::rpc
