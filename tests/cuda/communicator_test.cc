#include "comm/collectives/nccl/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/cuda/fake_cuda.h"
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
  void SetUp() override {
    FakeNccl::get().reset();
    make(FakeNccl::api());
  }
  void TearDown() override {
    communicator.reset();
    testing::FakeCuda::get().reset();
    EXPECT_EQ(FakeNccl::get().living(), 0);
    EXPECT_THAT(FakeNccl::get().misuses(), ::testing::IsEmpty());
  }

  void make(const NcclApi& api) {
    communicator = std::make_unique<Communicator>(
        api, Wait{clock, 10, [this] { return closed; },
                  [this](int64_t waited_ns) {
                    waits_ns.push_back(waited_ns);
                    clock.ns += 1'000'000;
                    if (static_cast<int>(waits_ns.size()) == close_after) closed = true;
                  }});
  }
  Status init() { return communicator->init({}, 0, 1); }
  void end() {
    communicator->stop();
    communicator->free();
  }
  // A group of one sum on the stream.
  Status sum() {
    return communicator->group([this](ncclComm_t comm) {
      return FakeNccl::api().all_reduce(&value, &value, 1, ncclFloat32, ncclSum, comm, &stream);
    });
  }

  StepClock clock;
  bool closed = false;
  std::vector<int64_t> waits_ns;
  int close_after = -1;
  float value = 1;
  CUstream_st stream;
  std::unique_ptr<Communicator> communicator;
};

TEST_F(CommunicatorTest, WaitsUntilNcclIsReadyAndEndsOnce) {
  FakeNccl::get().looks_until_ready = 4;
  const Status made = init();
  ASSERT_TRUE(made.is_ok()) << made.message();
  // The time waited so far tells whether to spin or to sleep.
  EXPECT_THAT(waits_ns, ElementsAre(0, 1'000'000, 2'000'000));
  end();
  end();
  EXPECT_THAT(FakeNccl::get().log(),
              ElementsAre("rank 0: init ", "rank 0: revoke", "rank 0: destroy"));
  EXPECT_EQ(communicator->health().code(), Code::kAborted);
}

TEST_F(CommunicatorTest, IsAbortedByALibraryThatCannotRevoke) {
  make(FakeNccl::api_without_revoke());
  ASSERT_TRUE(init().is_ok());
  end();
  EXPECT_THAT(FakeNccl::get().log(), ElementsAre("rank 0: init ", "rank 0: abort"));
}

TEST_F(CommunicatorTest, ThatDoesNotGetReadyTimesOutAndIsAborted) {
  FakeNccl::get().looks_until_ready = -1;
  EXPECT_THAT(init(), FailsWith(Code::kTimeout, Says("10 ms")));
  end();
  EXPECT_THAT(FakeNccl::get().log(), ElementsAre("rank 0: init ", "rank 0: abort"));
}

TEST_F(CommunicatorTest, OfAGenerationThatIsClosedMeanwhileIsAborted) {
  FakeNccl::get().looks_until_ready = -1;
  close_after = 3;
  EXPECT_EQ(init().code(), Code::kAborted);
  EXPECT_EQ(waits_ns.size(), 3u);
  communicator.reset();  // also by the destructor
  EXPECT_THAT(FakeNccl::get().log(), ElementsAre("rank 0: init ", "rank 0: abort"));
}

// Errors that a peer's death may cause while ranks connect, and errors that it cannot cause.
const std::pair<ncclResult_t, Code> kOutcomes[] = {
    {ncclSystemError, Code::kAborted},      {ncclInternalError, Code::kAborted},
    {ncclRemoteError, Code::kAborted},      {ncclUnhandledCudaError, Code::kInternal},
    {ncclInvalidArgument, Code::kInternal}, {ncclInvalidUsage, Code::kInternal}};

TEST_F(CommunicatorTest, ThatFailsToGetReadyEndsTheGenerationUnlessTheCauseIsHere) {
  for (const auto& [outcome, code] : kOutcomes) {
    make(FakeNccl::api());
    FakeNccl::get().outcome = outcome;
    EXPECT_THAT(init(), FailsWith(code, Says("connect the GPUs", "unhandled system error",
                                             "connection reset by peer")))
        << outcome;
  }
}

// NCCL connects to a peer when it first has something for it.
TEST_F(CommunicatorTest, ThatFailsInAGroupEndsTheGenerationUnlessTheCauseIsHere) {
  for (const auto& [outcome, code] : kOutcomes) {
    FakeNccl::get().outcome = ncclSuccess;
    make(FakeNccl::api());
    ASSERT_TRUE(init().is_ok());
    FakeNccl::get().looks_until_ready = 3;  // the look before the group is still fine
    EXPECT_TRUE(communicator->health().is_ok());
    const Status status = communicator->group([&, outcome = outcome](ncclComm_t comm) {
      FakeNccl::get().outcome = outcome;
      return FakeNccl::api().all_reduce(&value, &value, 1, ncclFloat32, ncclSum, comm, &stream);
    });
    EXPECT_THAT(status, FailsWith(code, Says("enqueue transfers"))) << outcome;
  }
}

// Revoke would use memory of the group that NCCL has freed.
TEST_F(CommunicatorTest, WhoseLastGroupDidNotEndWellIsAborted) {
  ASSERT_TRUE(init().is_ok());
  FakeNccl::get().looks_until_ready = -1;
  EXPECT_THAT(sum(), FailsWith(Code::kTimeout));
  FakeNccl::get().looks_until_ready = 2;
  end();
  EXPECT_THAT(FakeNccl::get().log(), ElementsAre("rank 0: init ", "rank 0: abort"));
  make(FakeNccl::api());
  ASSERT_TRUE(init().is_ok());
  ASSERT_TRUE(sum().is_ok());
  FakeNccl::get().fail(0, ncclSystemError);
  EXPECT_THAT(sum(), FailsWith(Code::kAborted));  // not begun, so the last group is the one before
}

// NCCL's own thread hands a group to the stream. Later work on the stream comes after the group.
TEST_F(CommunicatorTest, HasGivenItsGroupToTheStreamWhenItReturns) {
  ASSERT_TRUE(init().is_ok());
  FakeNccl::get().looks_until_ready = 5;
  ASSERT_TRUE(sum().is_ok());
  EXPECT_EQ(stream.posted(), 1u);
}

// NCCL refuses to destroy a communicator that has failed.
TEST_F(CommunicatorTest, ThatBreaksLaterIsAborted) {
  ASSERT_TRUE(init().is_ok());
  EXPECT_TRUE(communicator->health().is_ok());
  FakeNccl::get().outcome = ncclRemoteError;
  EXPECT_EQ(communicator->health().code(), Code::kAborted);
  EXPECT_EQ(sum().code(), Code::kAborted);
  end();
  EXPECT_THAT(FakeNccl::get().log(),
              ElementsAre("rank 0: init ", "rank 0: revoke", "rank 0: abort"));
}

TEST_F(CommunicatorTest, ClosesItsGroupEvenWhenATransferIsRefused) {
  ASSERT_TRUE(init().is_ok());
  const Status refused = communicator->group([](ncclComm_t) { return ncclInvalidArgument; });
  EXPECT_THAT(refused, FailsWith(Code::kInternal, Says("enqueue a transfer")));
  EXPECT_TRUE(sum().is_ok());
}

TEST(LookingAtNccl, SpinsAtFirstAndSleepsLater) {
  EXPECT_EQ(sleep_before_next_look_us(0), 0);
  EXPECT_EQ(sleep_before_next_look_us(limits::kNcclSpinUs * 1'000 - 1), 0);
  EXPECT_EQ(sleep_before_next_look_us(limits::kNcclSpinUs * 1'000), limits::kNcclPollUs);
}

TEST(OpenNccl, SaysWhatIsMissing) {
  const auto api = open_nccl("/nowhere/libnccl.so.2");
  EXPECT_THAT(api, FailsWith(Code::kConfig, Names("/nowhere/libnccl.so.2"), Advises("NCCL 2.27")));
  const auto other = open_nccl("libm.so.6");
  EXPECT_THAT(other.status().message(), Names("libm.so.6", "ncclGetVersion"));
}

TEST(OpenNccl, ShowsVersionsAsNcclDoes) {
  EXPECT_EQ(version_text(22809), "2.28.9");
  EXPECT_EQ(version_text(22703), "2.27.3");
  EXPECT_EQ(version_text(23000), "2.30.0");
}

TEST(OpenNccl, FindsEveryFunctionInTheRealLibrary) {
  const auto api = open_nccl("libnccl.so.2");
  if (!api.is_ok() && api.status().message().find("cannot open") != std::string::npos)
    GTEST_SKIP() << api.status().message();
  EXPECT_TRUE(api.is_ok()) << api.status().message();
}

}  // namespace
}  // namespace lockstep::nccl
