#include "worker/cuda/pinned_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/cuda/fake_cuda.h"

namespace lockstep::cuda {
namespace {

using lockstep::testing::FakeCuda;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

alignas(4096) std::byte page[4096];

// The thread that destroys an engine need not be the one that made it.
TEST(PinnedMemory, IsGivenBackOnItsDeviceByAnyThread) {
  FakeCuda::get().reset();
  for (const bool is_pinned : {true, false}) {
    std::thread([&] {
      if (is_pinned)
        pin(3, page, sizeof page);
      else
        unpin(3, page);
    }).join();
    EXPECT_EQ(FakeCuda::get().pinned().size(), is_pinned ? 1u : 0u);
  }
  EXPECT_THAT(FakeCuda::get().contexts(), ElementsAre(3));
  FakeCuda::get().reset();
}

TEST(PinnedMemory, HasPagesOfItsOwn) {
  FakeCuda::get().reset();
  pin(0, page + 1, 1);
  EXPECT_THAT(FakeCuda::get().pinned(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::cuda
