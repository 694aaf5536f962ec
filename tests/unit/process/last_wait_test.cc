// The end of a worker's process does not depend on its training thread.
#include "worker/process/last_wait.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// As main() has them: what goes after the wait would wait itself.
struct WaitsForever {
  ~WaitsForever() {
    while (true) ::pause();
  }
};

TEST(LastWait, ATrainingThreadThatDoesNotComeBackEndsTheProcessWithoutDestructors) {
  EXPECT_EXIT(
      {
        std::promise<void> never;
        std::future<void> over = never.get_future();
        std::optional<WaitsForever> worker(std::in_place);
        std::atexit([] { std::fputs("cleaned up", stderr); });
        wait_or_leave(over, milliseconds(1), 75);
        std::fputs("went on", stderr);
        ::_exit(1);
      },
      ::testing::ExitedWithCode(75), "^$");
}

TEST(LastWait, OneThatIsBackLetsTheProcessEndAsAlways) {
  std::promise<void> done;
  std::future<void> over = done.get_future();
  done.set_value();
  wait_or_leave(over, milliseconds(0), 75);  // else the test ends here, with 75
}

TEST(EndProcess, KeepsWhatWasPrintedAndRunsNothingElse) {
  EXPECT_EXIT(
      {
        std::atexit([] { std::fputs("cleaned up", stderr); });
        std::setvbuf(stderr, nullptr, _IOFBF, 100);
        std::fputs("printed", stderr);
        end_process(66);
      },
      ::testing::ExitedWithCode(66), "^printed$");
}

}  // namespace
}  // namespace lockstep
