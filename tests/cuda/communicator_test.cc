#include "comm/collectives/nccl/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/fake_nccl.h"
#include "tests/support/fails_with.h"

namespace lockstep::nccl {
namespace {

using ::testing::ElementsAre;
using testing::FakeNccl;
using ::testing::HasSubstr;

class StepClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return ns; }
  int64_t wall_ms() const override { return 0; }
  int64_t ns = 0;
};

class CommunicatorTest : public ::testing::Test {
 protected:
  void SetUp() override { FakeNccl::get().reset(); }

  Wait wait() {
    return {clock, 10, [this] { return closed; },
            [this] {
              ++pauses;
              clock.ns += 1'000'000;
              if (pauses == close_after) closed = true;
            }};
  }
  Result<std::unique_ptr<Communicator>> init() {
    return Communicator::init(FakeNccl::api(), {}, 0, 1, wait());
  }

  StepClock clock;
  bool closed = false;
  int pauses = 0;
  int close_after = -1;
};

TEST_F(CommunicatorTest, WaitsUntilNcclIsReadyAndEndsOnce) {
  FakeNccl::get().looks_until_ready = 4;
  auto made = init();
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  EXPECT_EQ(pauses, 3);
  float data[4];
  (*made)->register_buffer(data, sizeof data);
  EXPECT_TRUE((*made)->finalize(wait()).is_ok());
  EXPECT_TRUE((*made)->finalize(wait()).is_ok());
  (*made)->abort();
  (*made).reset();
  EXPECT_THAT(FakeNccl::get().log(),
              ElementsAre("rank 0: init ", "rank 0: register", "rank 0: deregister",
                          "rank 0: finalize", "rank 0: destroy"));
}

TEST_F(CommunicatorTest, ThatDoesNotGetReadyTimesOutAndIsAborted) {
  FakeNccl::get().looks_until_ready = -1;
  const auto made = init();
  EXPECT_EQ(made.status().code(), Code::kTimeout);
  EXPECT_THAT(made.status().message(), HasSubstr("10 ms"));
  EXPECT_THAT(FakeNccl::get().log(), ElementsAre("rank 0: init ", "rank 0: abort"));
}

TEST_F(CommunicatorTest, OfAGenerationThatIsClosedMeanwhileIsAborted) {
  FakeNccl::get().looks_until_ready = -1;
  close_after = 3;
  EXPECT_EQ(init().status().code(), Code::kAborted);
  EXPECT_EQ(pauses, 3);
  EXPECT_THAT(FakeNccl::get().log(), ElementsAre("rank 0: init ", "rank 0: abort"));
}

TEST_F(CommunicatorTest, ThatFailsSaysWhatWasTriedAndWhatNcclSays) {
  FakeNccl::get().outcome = ncclSystemError;
  const auto made = init();
  EXPECT_EQ(made.status().code(), Code::kInternal);
  EXPECT_EQ(made.status().message(),
            "connect the GPUs: unhandled system error (connection reset by peer)");
}

// It ends the generation, and not the worker: a peer that died looks so.
TEST_F(CommunicatorTest, ThatBreaksLaterEndsTheGeneration) {
  auto made = init();
  ASSERT_TRUE(made.is_ok());
  EXPECT_TRUE((*made)->health().is_ok());
  FakeNccl::get().outcome = ncclRemoteError;
  EXPECT_EQ((*made)->health().code(), Code::kAborted);
  EXPECT_EQ((*made)->finalize(wait()).code(), Code::kAborted);
  (*made).reset();  // what could not be finalized is aborted
  EXPECT_EQ(FakeNccl::get().log().back(), "rank 0: abort");
}

TEST_F(CommunicatorTest, ClosesItsGroupEvenWhenATransferIsRefused) {
  auto made = init();
  ASSERT_TRUE(made.is_ok());
  const Status refused = (*made)->group([](ncclComm_t) { return ncclInvalidArgument; });
  EXPECT_THAT(refused.message(), HasSubstr("enqueue a transfer"));
  EXPECT_TRUE((*made)->group([](ncclComm_t) { return ncclSuccess; }).is_ok());
}

TEST(OpenNccl, SaysWhatIsMissing) {
  const auto api = open_nccl("/nowhere/libnccl.so.2");
  EXPECT_THAT(api, FailsWith(Code::kConfig, Names("/nowhere/libnccl.so.2"), Advises("NCCL 2.27")));
  const auto other = open_nccl("libm.so.6");
  EXPECT_THAT(other.status().message(), Names("libm.so.6", "ncclGetVersion"));
}

TEST(OpenNccl, FindsEveryFunctionInTheRealLibrary) {
  const auto api = open_nccl("libnccl.so.2");
  if (!api.is_ok() && api.status().message().find("cannot open") != std::string::npos)
    GTEST_SKIP() << api.status().message();
  EXPECT_TRUE(api.is_ok()) << api.status().message();
}

}  // namespace
}  // namespace lockstep::nccl
