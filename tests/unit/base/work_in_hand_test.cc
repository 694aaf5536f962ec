#include "comm/base/work_in_hand.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/base/limits.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

WorkInHand make() {
  return std::move(WorkInHand::make()).value();
}

TEST(WorkInHand, ReadAndComputedSlotsAreKeptApart) {
  WorkInHand work = make();
  EXPECT_THAT(work.get().slots, IsEmpty());
  work.computes(0, 0);
  work.reads(Step{1} << 40, limits::kSlots - 1);
  EXPECT_THAT(work.get().slots, ElementsAre(SlotInHand{Step{1} << 40, limits::kSlots - 1, true},
                                            SlotInHand{0, 0, false}));
  work.has_read();
  EXPECT_THAT(work.get().slots, ElementsAre(SlotInHand{0, 0, false}));
  work.has_computed();
  EXPECT_THAT(work.get().slots, IsEmpty());
}

TEST(WorkInHand, AWorkerThatHasRegisteredSaysSoToItsStarter) {
  const WorkInHand work = make();
  EXPECT_FALSE(work.has_registered());
  auto own = WorkInHand::attach(::dup(work.descriptor()));
  ASSERT_TRUE(own.is_ok());
  own->has_been_registered();
  own->has_computed();
  EXPECT_TRUE(work.has_registered());
}

TEST(WorkInHand, AWorkersGpuIsTheUuidThatItHasTold) {
  WorkInHand work = make();
  EXPECT_EQ(work.gpu(), "");
  for (const char* text : {"", "0000:3b:00.0", "0123456789abcdef0123456789abcdeg"}) {
    work.is_on_gpu(text);
    EXPECT_EQ(work.gpu(), "");
  }
  auto own = WorkInHand::attach(::dup(work.descriptor()));
  ASSERT_TRUE(own.is_ok());
  own->is_on_gpu("0123456789abcdef00000000fedcba98");
  EXPECT_EQ(work.gpu(), "0123456789abcdef00000000fedcba98");
}

TEST(WorkInHand, AProcessThatIsKilledLeavesItsMarks) {
  const WorkInHand work = make();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto own = WorkInHand::attach(::dup(work.descriptor()));
    if (!own.is_ok()) ::_exit(1);
    own->computes(7, 2);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(work.get().slots, ElementsAre(SlotInHand{7, 2, false}));
}

TEST(WorkInHand, OtherDescriptorsAreRefusedAndTheMemoryCannotBeCutOff) {
  EXPECT_EQ(WorkInHand::attach(12'345).status().code(), Code::kConfig);
  const int null = ::open("/dev/null", O_RDWR);
  EXPECT_EQ(WorkInHand::attach(null).status().code(), Code::kConfig);
  ::close(null);
  const WorkInHand work = make();
  EXPECT_NE(::ftruncate(work.descriptor(), 0), 0);
}

}  // namespace
}  // namespace lockstep
