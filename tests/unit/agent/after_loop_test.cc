// A script that fails after its loop: from the worker's last words to what `lockstep run` says.
#include "deploy/agent/after_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

WorkerEnd ended(int code, const std::string& words) {
  WorkerEnd worker;
  worker.local_rank = 2;
  worker.end.exit_code = code;
  worker.last_words = words;
  return worker;
}

constexpr char kWords[] =
    "Traceback (most recent call last):\nValueError: no such plot\n"
    "lockstep: after its loop the script failed (ValueError), so its exit code is 70; the run is "
    "complete all the same";

TEST(AfterLoop, TheErrorAndItsCodeComeThroughALineOfTheLog) {
  const std::string told = failure_after_loop(ended(70, kWords));
  EXPECT_THAT(told, HasSubstr("worker 2"));
  EXPECT_THAT(told, HasSubstr("ValueError: no such plot"));
  AfterLoop script;
  EXPECT_FALSE(script.see({"agent: worker 1 was started"}));
  EXPECT_EQ(script.exit_code, 0);
  EXPECT_TRUE(script.see({"agent: something else", "agent: " + told}));
  EXPECT_EQ(script.exit_code, 70);
  EXPECT_EQ(script.what, told);
  EXPECT_FALSE(script.see({failure_after_loop(ended(3, kWords))})) << "one of them is enough";
  EXPECT_EQ(script.exit_code, 70);
}

TEST(AfterLoop, ACodeOfTheScriptsOwnStays) {
  const std::string told = failure_after_loop(
      ended(3, "lockstep: after its loop the script failed (SystemExit), so its exit code is 3"));
  AfterLoop script;
  EXPECT_TRUE(script.see({told}));
  EXPECT_EQ(script.exit_code, 3);
}

TEST(AfterLoop, OtherEndsAreNone) {
  EXPECT_EQ(failure_after_loop(ended(0, kWords)), "");
  EXPECT_EQ(failure_after_loop(ended(70, "ValueError: in the loop's body")), "");
}

}  // namespace
}  // namespace lockstep
