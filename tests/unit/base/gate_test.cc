#include "comm/base/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace lockstep {
namespace {

TEST(Gate, CloseWaitsForWhatIsInsideAndLetsNothingMoreIn) {
  Gate gate;
  ASSERT_TRUE(gate.try_enter());
  std::atomic<bool> left = false;
  auto closed = std::async(std::launch::async, [&] {
    gate.close();
    return left.load();
  });
  while (!gate.is_closed()) std::this_thread::yield();
  EXPECT_FALSE(gate.try_enter());
  left = true;
  gate.leave();
  EXPECT_TRUE(closed.get());  // close() returned only after leave()
}

}  // namespace
}  // namespace lockstep
