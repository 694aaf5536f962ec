// Pools of graphs whose capture failed, held against an allocator that counts as LibTorch's do
// (ATen/core/CachingHostAllocator.h: begin, end and release of a pool).
#include "worker/cuda/leave_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lockstep::cuda {
namespace {

struct Pool {
  int users = 0;
  bool is_used = false;

  void begin() {
    if (is_used) throw std::runtime_error("already recording");
    ++users;
    is_used = true;
  }
  void end() {
    if (!is_used) throw std::runtime_error("not currently recording");
    is_used = false;
  }
  void release() {
    if (users == 0) throw std::runtime_error("no such pool");
    --users;
  }
  void leave(CaptureFailed when) {
    leave_pool(
        when, [this] { end(); }, [this] { release(); });
  }
};

TEST(LeavePool, NobodyUsesItAfterACaptureThatFailedAtItsEnd) {
  for (const bool has_ended : {false, true}) {
    Pool pool;
    pool.begin();
    if (has_ended) pool.end();
    pool.leave(CaptureFailed::kAtEnd);
    EXPECT_FALSE(pool.is_used);
    EXPECT_EQ(pool.users, 0);
    EXPECT_NO_THROW(pool.begin());
  }
}

TEST(LeavePool, AnotherGraphKeepsItWhereACaptureNeverBegan) {
  for (const bool has_begun : {false, true}) {
    Pool pool;
    pool.begin();
    pool.end();  // of a graph that is there
    if (has_begun) pool.begin();
    pool.leave(CaptureFailed::kAtBegin);
    EXPECT_FALSE(pool.is_used);
    EXPECT_EQ(pool.users, 1);
  }
}

TEST(LeavePool, AGraphThatEndedItsCaptureReleasesItByItself) {
  Pool pool;
  pool.begin();
  pool.end();
  pool.leave(CaptureFailed::kLater);
  EXPECT_EQ(pool.users, 1);
}

}  // namespace
}  // namespace lockstep::cuda
